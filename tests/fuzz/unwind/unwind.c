/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind.c: any bytes as an ELF file, or, where they do not begin as one, the first byte selects
 * how the rest is wrapped into one as call frame information. What compiles has ascending rows with
 * rules of the dictionary, and its page index leads to them; what does not leaves the dictionary as
 * it was.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/unwind/compile/unwind_compile.h"
#include "tests/unit/consumer/unwind/testing/cfi_file_testing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check_rows(const struct unwind_table *t, const struct unwind_rules *rules)
{
	assert(t->row_count > 0 && t->rows[0].pc == 0);
	for (uint32_t i = 0; i < t->row_count; i++) {
		assert(t->rows[i].rule < rules->count && t->rows[i].pad == 0);
		assert(i == 0 || t->rows[i].pc > t->rows[i - 1].pc);
		assert(t->rows[i].pc < UNWIND_SPAN_MAX);
	}
	assert(t->rows[t->row_count - 1].rule == UNWIND_RULE_NONE);
}

/* Each row's first and last byte are found by the index. */
static void check_index(const struct unwind_table *t)
{
	for (uint32_t i = 0; i < t->row_count; i++) {
		assert(unwind_table_find(t, t->base + t->rows[i].pc) == t->rows[i].rule);
		if (i > 0)
			assert(unwind_table_find(t, t->base + t->rows[i].pc - 1) ==
			       t->rows[i - 1].rule);
	}
	for (uint32_t i = 0; i < t->page_count; i++) {
		uint32_t count = UNWIND_PAGE_COUNT(t->pages[i]);

		assert(count >= 1 && count <= UNWIND_PAGE_BYTES);
		assert(count <= t->row_count - UNWIND_PAGE_FIRST(t->pages[i]));
	}
}

static void compile(const struct elf_image *image)
{
	struct unwind_table t, again;
	struct unwind_rules rules;

	if (unwind_rules_init(&rules) < 0)
		return;
	if (unwind_compile(image, &rules, &t) == 0) {
		check_rows(&t, &rules);
		check_index(&t);
		assert(unwind_compile(image, &rules, &again) == 0 && again.counts.rules == 0);
		assert(again.row_count == t.row_count);
		assert(memcmp(again.rows, t.rows, t.row_count * sizeof(*t.rows)) == 0);
		unwind_table_done(&again);
		unwind_table_done(&t);
	} else {
		assert(rules.count == UNWIND_RULE_END + 1);
	}
	unwind_rules_done(&rules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct elf_image image = { .fd = -1, .memory = data, .bytes = bytes };

	if (bytes == 0 || data[0] == ELFMAG0) {
		compile(&image);
		return 0;
	}
	image = wrap(data + 1, bytes - 1, (enum wrap_way)(data[0] % WRAP_WAYS));
	compile(&image);
	free((void *)image.memory);
	return 0;
}
