/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * speed.c: what compiling each given file costs, the best of five runs with a warm cache. A table
 * for people: no verdict. Run by `meson test --benchmark`, or by hand with any files.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "consumer/unwind/compile/unwind_compile.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/unwind/testing/image_testing.h"

#define RUNS 5

static const char *const usual[] = {
	"/lib64/ld-linux-x86-64.so.2",
	"/lib/x86_64-linux-gnu/libc.so.6",
	"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
	"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
	"/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0",
	"/usr/bin/python3.11",
	"/usr/bin/perl",
	"/usr/bin/ruby3.1",
	"/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1",
	"/usr/bin/php8.2",
	"/usr/bin/redis-server",
	"/usr/sbin/nginx",
	"/usr/lib/postgresql/15/bin/postgres",
	"/usr/bin/node",
	"/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so",
};

/* Of this thread's own time: another load on the machine counts as little as may be. */
static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static void print_lost(const struct unwind_counts *counts)
{
	for (int i = CFI_LOSS_NONE + 1; i < CFI_LOSS_COUNT_; i++)
		if (counts->lost[i] > 0)
			printf(" %s %u", cfi_loss_word((enum cfi_loss)i), counts->lost[i]);
	printf("\n");
}

static int measure(const char *path, struct unwind_rules *rules)
{
	struct unwind_table t = { 0 };
	uint64_t best = UINT64_MAX;
	struct elf_image image;
	int r;

	r = image_open(path, &image);
	for (int i = 0; r == 0 && i < RUNS; i++) {
		uint64_t start;

		unwind_table_done(&t);
		unwind_rules_rewind(rules, UNWIND_RULE_END + 1);
		start = now_ns();
		r = unwind_compile(&image, rules, &t);
		best = MIN(best, now_ns() - start);
	}
	image_close(&image);
	if (r < 0) {
		printf("%-24.24s %s\n", strrchr(path, '/') + 1, strerror(-r));
		return r;
	}
	printf("%-24.24s %7u %8u %8u %5u %7zu %8.3f %9.0f %7.3f%%", strrchr(path, '/') + 1,
	       t.counts.entries, t.counts.states, t.row_count, t.counts.rules,
	       unwind_table_bytes(&t) / 1024, (double)best / 1e6,
	       t.row_count / ((double)best / 1e6),
	       100.0 * (double)t.counts.unsupported_bytes / (double)MAX(t.counts.text_bytes, 1u));
	print_lost(&t.counts);
	unwind_table_done(&t);
	return 0;
}

int main(int argc, char **argv)
{
	struct unwind_rules rules;
	int measured = 0;

	if (unwind_rules_init(&rules) < 0)
		return 1;
	printf("%-24s %7s %8s %8s %5s %7s %8s %9s %8s\n", "file", "FDEs", "states", "rows", "rules",
	       "KB", "ms", "rows/ms", "no rule");
	for (int i = 1; i < argc; i++)
		measured += measure(argv[i], &rules) == 0;
	for (size_t i = 0; argc == 1 && i < ARRAY_SIZE(usual); i++)
		measured += measure(usual[i], &rules) == 0;
	unwind_rules_done(&rules);
	return measured > 0 ? 0 : 1;
}
