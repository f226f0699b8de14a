/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scope.h: decides which cgroups the programs may read. Root passes the prefixes on the loader's
 * command line, and the consumer may only read them: no value that the consumer writes into
 * `watches`, `targets` or the rules gives access outside of them. Without prefixes every cgroup is
 * allowed and nothing is tested.
 */
#ifndef TROCAR_BPF_WATCH_SCOPE_H
#define TROCAR_BPF_WATCH_SCOPE_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel.h"
#include "bpf/maps/maps.h"

#define SCOPE_LEVELS   32   /* compared levels of a path; a prefix has no more levels than bytes */
#define SCOPE_VERDICTS 4096 /* cgroups with a cached answer */

/*
 * The loader sets it before it loads the programs: if 0, the verifier removes the test from them.
 */
const volatile __u32 scoped __weak = 0;

/* Private: the answer by cgroup id. An id is never reused, and a cgroup keeps its path. */
__weak MAP(LRU_HASH, scope_verdicts, __u64, __u32, SCOPE_VERDICTS);

/* A path under construction: a name may end after the last byte of the key. */
struct scope_path {
	struct cgroup_key key;
	char rest[CGROUP_PREFIX_BYTES + 1];
};

__weak MAP(PERCPU_ARRAY, scope_paths, __u32, struct scope_path, 1);

/* Returns true if the path of `bytes` bytes in `key` begins with one of the prefixes. */
static __always_inline bool scope_holds(struct cgroup_key *key, __u32 bytes)
{
	key->prefix_bits = 8 * bytes;
	return bpf_map_lookup_elem(&scope, key);
}

/*
 * Builds the path of `cgroup` from the names of its ancestors. Returns true if it begins with one
 * of the prefixes.
 */
static __noinline bool compare_path(struct cgroup *cgroup)
{
	struct cgroup **ancestors = __builtin_preserve_access_index(&cgroup->ancestors[0]);
	__u32 levels = BPF_CORE_READ(cgroup, level);
	struct scope_path *p = map_single(&scope_paths);
	__u64 at = 0;

	if (!p)
		return false;
	for (__u32 i = 1; i <= SCOPE_LEVELS && i <= levels; i++) {
		struct cgroup *ancestor;
		const char *name;
		long n;

		if (bpf_core_read(&ancestor, sizeof(ancestor), &ancestors[i]))
			return false;
		name = BPF_CORE_READ(ancestor, kn, name);
		p->key.path[at & (CGROUP_PREFIX_BYTES - 1)] = '/';
		n = bpf_probe_read_kernel_str(p->key.path + (at & (CGROUP_PREFIX_BYTES - 1)) + 1,
					      CGROUP_PREFIX_BYTES, name);
		if (n <= 0)
			return false;
		at += n; /* the '/' and the name, without its NUL */
		if (at >= CGROUP_PREFIX_BYTES - 1) {
			at = CGROUP_PREFIX_BYTES - 1;
			break;
		}
	}
	if (at == 0) {
		p->key.path[0] = '/';
		at = 1;
	}
	return scope_holds(&p->key, at);
}

/* Returns true if the programs may read the cgroup. */
static __always_inline bool scope_allows(struct cgroup *cgroup)
{
	const __u32 *known;
	__u32 verdict;
	__u64 id;

	if (!scoped)
		return true;
	id = BPF_CORE_READ(cgroup, kn, id);
	known = bpf_map_lookup_elem(&scope_verdicts, &id);
	if (known)
		return READ_WORD(*known);
	verdict = compare_path(cgroup);
	bpf_map_update_elem(&scope_verdicts, &id, &verdict, BPF_ANY);
	return verdict;
}

/* As scope_allows, for the cgroup of `task`. */
static __always_inline bool scope_allows_task(struct task_struct *task)
{
	return !scoped || scope_allows(BPF_CORE_READ(task, cgroups, dfl_cgrp));
}

#endif
