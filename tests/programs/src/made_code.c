/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * made_code.c: machine code that the program writes itself, which keeps 0 in the frame pointer
 * while one function of it calls another.
 */
#include <string.h>
#include <sys/mman.h>

#include "../../workloads/workload.h"

/* push %rbp; xor %ebp,%ebp; call 1f; pop %rbp; ret; 1: mov $200000,%ecx; 2: dec %ecx; jnz 2b; ret
 */
static const unsigned char code[] = { 0x55, 0x31, 0xed, 0xe8, 0x02, 0,	  0,	0,    0x5d, 0xc3,
				      0xb9, 0x40, 0x0d, 0x03, 0,    0xff, 0xc9, 0x75, 0xfc, 0xc3 };

NAMED void calls_made(void (*made)(void))
{
	made();
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	uint64_t deadline = workload_deadline(argc, argv, "made_code SECONDS");
	void *room = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (room == MAP_FAILED)
		return 1;
	memcpy(room, code, sizeof(code));
	if (mprotect(room, 4096, PROT_READ | PROT_EXEC) < 0)
		return 1;
	while (workload_now_ns() < deadline)
		calls_made((void (*)(void))room);
	return 0;
}
