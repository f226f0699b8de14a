/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_scan.c: any bytes as text without call frame information; the first two are its entry
 * point. It has rows that ascend, with rules of the dictionary.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "consumer/unwind/infer/unwind_scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct unwind_table t = { 0 };
	struct unwind_rules rules;
	struct unwind_scan scan = { .text = data + 2, .bytes = (uint32_t)bytes - 2 };
	uint32_t functions = 0, *starts;

	if (bytes < 3 || bytes > UNWIND_SCAN_MAX || unwind_rules_init(&rules) < 0)
		return 0;
	starts = malloc(UNWIND_SCAN_TARGETS(bytes) * sizeof(*starts));
	if (!starts)
		abort();
	scan.functions = starts;
	scan.function_count = unwind_scan_targets(&scan, starts);
	assert(scan.function_count <= UNWIND_SCAN_TARGETS(bytes));
	scan.entry = data[0] | (uint32_t)data[1] << 8;
	if (unwind_scan_text(&scan, &rules, UNWIND_RULES_MAX, &t, &functions) == 0) {
		assert(t.row_count > 0 && t.rows[0].pc == 0);
		for (uint32_t i = 0; i < t.row_count; i++) {
			assert(t.rows[i].rule < rules.count && t.rows[i].pc < scan.bytes);
			assert(i == 0 || t.rows[i].pc > t.rows[i - 1].pc);
		}
	}
	free(starts);
	unwind_table_done(&t);
	unwind_rules_done(&rules);
	return 0;
}
