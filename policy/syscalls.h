/* SPDX-License-Identifier: BSD-2-Clause */
/* syscalls.h: the rows of syscalls.def as a table, for seccomp.c and tests/lockdown. */
#ifndef TROCAR_POLICY_SYSCALLS_H
#define TROCAR_POLICY_SYSCALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/policy.h"

/* (argument `index` & mask) == value */
struct syscalls_filter {
	unsigned int index;
	uint64_t mask;
	uint64_t value;
};

struct syscalls_row {
	enum policy_process process;
	uint32_t flag;	 /* enum policy_flag with which the row is added; 0: always */
	const char *key; /* "read", "bpf(BPF_MAP_LOOKUP_ELEM)": unique within a process */
	const char *reason;
	int number;  /* negative: this architecture has no such call */
	int error;   /* 0: allowed; else the call fails with this errno */
	bool self;   /* filters[0] compares with the caller's process id */
	bool unless; /* filters[0] holds when the argument differs from `value`; it has no mask */
	unsigned int n_filters;
	struct syscalls_filter filters[2];
};

/* Returns all rows; *ret_n of them, static. */
const struct syscalls_row *syscalls_rows(size_t *ret_n);

/*
 * Does policy_seccomp_flags without the row `key` (NULL: with all rows), so that tests/lockdown can
 * prove that its case needs the row. -ENOENT: there is no such row.
 */
int policy_seccomp_without(enum policy_process process, uint32_t flags, const char *key);

#endif
