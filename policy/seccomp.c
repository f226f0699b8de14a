/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <seccomp.h>
#include <string.h>
#include <unistd.h>

#include "policy/policy.h"
#include "policy/syscalls.h"
#include "shared/tools/cleanup.h"

static void release_filter(scmp_filter_ctx *filter)
{
	if (*filter)
		seccomp_release(*filter);
}

static int add_row(scmp_filter_ctx filter, const struct syscalls_row *row)
{
	struct scmp_arg_cmp compare[2];
	uint32_t action = row->error ? SCMP_ACT_ERRNO((uint32_t)row->error) : SCMP_ACT_ALLOW;

	for (unsigned int i = 0; i < row->n_filters; i++) {
		const struct syscalls_filter *f = &row->filters[i];

		compare[i] = (struct scmp_arg_cmp){
			.arg = f->index,
			.op = row->unless ? SCMP_CMP_NE : SCMP_CMP_MASKED_EQ,
			.datum_a = row->unless ? f->value : f->mask,
			.datum_b = row->self ? (uint64_t)getpid() : f->value,
		};
	}
	return seccomp_rule_add_array(filter, action, row->number, row->n_filters, compare);
}

static bool is_wanted(const struct syscalls_row *row, enum policy_process process, uint32_t flags)
{
	return row->process == process && (row->flag == 0 || (row->flag & flags)) &&
	       row->number >= 0;
}

/*
 * Creates a filter for all threads (TSYNC) that kills the process on a call of another
 * architecture. Without these two attributes the filter could be bypassed, so both are set before
 * the first row.
 */
static int open_filter(scmp_filter_ctx *ret_filter)
{
	scmp_filter_ctx filter __attribute__((cleanup(release_filter))) = NULL;
	int r;

	filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	if (!filter)
		return -ENOMEM;
	r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
	if (r < 0)
		return r;
	r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (r < 0)
		return r;
	*ret_filter = TAKE_PTR(filter);
	return 0;
}

int policy_seccomp_without(enum policy_process process, uint32_t flags, const char *key)
{
	scmp_filter_ctx filter __attribute__((cleanup(release_filter))) = NULL;
	const struct syscalls_row *rows;
	bool left_out = !key;
	size_t n;
	int r;

	r = open_filter(&filter);
	if (r < 0)
		return r;
	rows = syscalls_rows(&n);
	for (size_t i = 0; i < n; i++) {
		if (!is_wanted(&rows[i], process, flags))
			continue;
		if (key && strcmp(rows[i].key, key) == 0) {
			left_out = true;
			continue;
		}
		r = add_row(filter, &rows[i]);
		if (r < 0)
			return r;
	}
	if (!left_out)
		return -ENOENT;
	return seccomp_load(filter);
}

int policy_seccomp_flags(enum policy_process process, uint32_t flags)
{
	return policy_seccomp_without(process, flags, NULL);
}

int policy_seccomp(enum policy_process process)
{
	return policy_seccomp_without(process, 0, NULL);
}
