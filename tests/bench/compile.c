/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * compile ROUNDS FILE: the cost of compiling a file's call frame information into rows, and libdw's
 * cost for the same: each row once, from the first to the last. CPU time of this thread, the best
 * of ROUNDS, with a warm page cache.
 */
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "consumer/unwind/compile/unwind_compile.h"
#include "shared/tools/macro.h"
#include "tests/bench/tool.h"

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* ms; the table is the caller's. */
static double compile(const struct elf_image *image, struct unwind_table *ret_table)
{
	struct unwind_rules rules;
	double began = 0;
	int r = unwind_rules_init(&rules);

	if (r == 0) {
		began = now_ms();
		r = unwind_compile(image, &rules, ret_table);
		began = now_ms() - began;
		unwind_rules_done(&rules);
	}
	if (r < 0) {
		errno = -r;
		tool_die("compile");
	}
	return began;
}

/* A row at `pc` by libdw: rules of the three registers that ours keep. Its end, or 0. */
static uint64_t row_of(Dwarf_CFI *cfi, uint64_t pc)
{
	static const int registers[] = { 6, 16 }; /* rbp, the return address */
	Dwarf_Op memory[3], *ops;
	Dwarf_Frame *frame;
	Dwarf_Addr end = 0;
	size_t count;

	if (dwarf_cfi_addrframe(cfi, pc, &frame) != 0)
		return 0;
	dwarf_frame_info(frame, NULL, &end, NULL);
	dwarf_frame_cfa(frame, &ops, &count);
	for (size_t i = 0; i < ARRAY_SIZE(registers); i++)
		dwarf_frame_register(frame, registers[i], memory, &ops, &count);
	free(frame);
	return end;
}

/*
 * ms, and how many rows libdw has. Where the next function begins it is not asked: it is shown by
 * our rows that begin in text which libdw does not know.
 */
static double ask_libdw(int fd, const struct unwind_table *t, size_t *ret_rows)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	double began = now_ms();
	Dwarf_CFI *cfi = elf ? dwarf_getcfi_elf(elf) : NULL;

	if (!cfi)
		tool_die("libdw: %s", dwarf_errmsg(-1));
	*ret_rows = 0;
	for (uint32_t i = 0; i < t->row_count; i++) {
		uint64_t pc = t->base + t->rows[i].pc;
		uint64_t end = i + 1 < t->row_count ? t->base + t->rows[i + 1].pc : pc + 1;

		while (pc < end && (pc = row_of(cfi, pc)) != 0)
			(*ret_rows)++;
	}
	began = now_ms() - began;
	dwarf_cfi_end(cfi);
	elf_end(elf);
	return began;
}

int main(int argc, char **argv)
{
	uint32_t rounds = (uint32_t)tool_number(argc, argv, 1, 1, 100);
	const char *path = argc > 2 ? argv[2] : "";
	struct elf_image image = { .fd = open(path, O_RDONLY | O_CLOEXEC) };
	double ours = 0, libdw = 0;
	struct unwind_table t = { 0 };
	size_t libdw_rows = 0;
	struct stat st;

	if (image.fd < 0 || fstat(image.fd, &st) < 0)
		tool_die("%s", path);
	image.bytes = (uint64_t)st.st_size;
	elf_version(EV_CURRENT);
	for (uint32_t i = 0; i < rounds; i++) {
		double ms;

		unwind_table_done(&t);
		ms = compile(&image, &t);
		ours = i == 0 ? ms : MIN(ours, ms);
	}
	for (uint32_t i = 0; i < MIN(rounds, 3u); i++) {
		double ms = ask_libdw(image.fd, &t, &libdw_rows);

		libdw = i == 0 ? ms : MIN(libdw, ms);
	}
	printf("{\"rows\":%u,\"bytes\":%zu,\"ms\":%.3f,\"libdw_rows\":%zu,\"libdw_ms\":%.3f}\n",
	       t.row_count, unwind_table_bytes(&t), ours, libdw_rows, libdw);
	unwind_table_done(&t);
	close(image.fd);
	return 0;
}
