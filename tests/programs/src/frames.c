/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frames.c: frames of every shape that a compiler makes: of a size known at run time only, of 70
 * KB, aligned again, with wide registers in them, on a page of their own.
 */
#include <alloca.h>
#include <immintrin.h>
#include <string.h>

#include "../../workloads/workload.h"

NAMED void leaf(volatile char *room)
{
	for (unsigned int i = 0; i < WORKLOAD_TURNS; i++)
		*room = (char)i;
}

NAMED void has_alloca(unsigned int bytes)
{
	leaf(alloca(bytes));
	KEEP_FRAME();
}

NAMED void has_array(unsigned int bytes)
{
	volatile char room[bytes];

	leaf(room);
	KEEP_FRAME();
}

NAMED void is_large(void)
{
	volatile char room[70 * 1024];

	leaf(room);
	KEEP_FRAME();
}

NAMED __attribute__((force_align_arg_pointer)) void aligns_stack(void)
{
	volatile char room[48];

	leaf(room);
	KEEP_FRAME();
}

NAMED __attribute__((target("avx2"))) void has_avx2(void)
{
	volatile __m256i room;

	room = _mm256_set1_epi32(7);
	leaf((volatile char *)&room);
	KEEP_FRAME();
}

NAMED __attribute__((target("avx512f"))) void has_avx512(unsigned int bytes)
{
	volatile __m512i wide;
	volatile char room[bytes];

	wide = _mm512_set1_epi32(7);
	leaf(room);
	leaf((volatile char *)&wide);
	KEEP_FRAME();
}

NAMED void is_aligned(void)
{
	volatile char room[64] __attribute__((aligned(4096)));

	leaf(room);
	KEEP_FRAME();
}

NAMED void works(unsigned int turn)
{
	has_alloca(64 + turn % 512);
	has_array(64 + turn % 700);
	is_large();
	aligns_stack();
	is_aligned();
	if (__builtin_cpu_supports("avx2"))
		has_avx2();
	if (__builtin_cpu_supports("avx512f"))
		has_avx512(64 + turn % 300);
}

int main(int argc, char **argv)
{
	uint64_t deadline = workload_deadline(argc, argv, "frames SECONDS");

	for (unsigned int turn = 0; workload_now_ns() < deadline; turn++)
		works(turn);
	return 0;
}
