/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints the rows of policy/syscalls.def of this architecture for tests/lockdown/unused, one in a
 * line: process, number of the call, key, then index, mask and value of each condition. Rows that
 * refuse a call are left out.
 */
#include <inttypes.h>
#include <stdio.h>

#include "policy/syscalls.h"

static const char *const processes[] = {
	[POLICY_LOADER] = "LOADER",	[POLICY_CONSUMER] = "CONSUMER", [POLICY_CTL] = "CTL",
	[POLICY_RESOLVER] = "RESOLVER", [POLICY_BROKER] = "BROKER",
};

int main(void)
{
	size_t n;
	const struct syscalls_row *rows = syscalls_rows(&n);

	for (const struct syscalls_row *r = rows; r < rows + n; r++) {
		if (r->error || r->number < 0)
			continue;
		printf("%s\t%d\t%s", processes[r->process], r->number, r->key);
		for (unsigned int i = 0; i < r->n_filters && !r->self && !r->unless; i++)
			printf("\t%u %" PRIu64 " %" PRIu64, r->filters[i].index, r->filters[i].mask,
			       r->filters[i].value);
		putchar('\n');
	}
	return 0;
}
