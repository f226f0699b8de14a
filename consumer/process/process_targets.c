/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/process/process_targets.h"

#include <bpf/bpf.h>
#include <errno.h>

void process_targets_init(struct process_targets *t, int map_fd, const struct active_rules *active)
{
	*t = (struct process_targets){ .map_fd = map_fd, .active = active };
}

int process_targets_match(const struct process_targets *t, const struct process *p)
{
	const struct ruleset *set = t->active->set;
	struct process_key key = process_key(p);
	struct target target = { .rule = NO_SLOT };
	bool matched = p->rule || p->requested;

	if (!process_is_needed(p) ||
	    (bpf_map_lookup_elem(t->map_fd, &key, &target) < 0 && !matched))
		return 0;
	target.flags &= ~(TARGET_MATCHED | TARGET_REPORTED);
	/* A process without a table of its own may have inherited one, which it keeps. */
	if (p->unwind.table)
		target.unwind = p->unwind.table;
	if (matched)
		target.flags |= TARGET_MATCHED | TARGET_REPORTED;
	if (p->rule && set) {
		target.rule = (uint32_t)(p->rule - set->rules->rules);
		target.generation = set->generation;
	}
	return bpf_map_update_elem(t->map_fd, &key, &target, BPF_ANY) < 0 ? -errno : 0;
}

void process_targets_forget(const struct process_targets *t, const struct process *p)
{
	struct process_key key = process_key(p);

	bpf_map_delete_elem(t->map_fd, &key);
}

int process_targets_set_mapped(const struct process_targets *t, const struct process *p,
			       bool mapped)
{
	struct process_key key = process_key(p);
	struct target target;

	if (bpf_map_lookup_elem(t->map_fd, &key, &target) < 0)
		return -errno;
	target.flags &= ~TARGET_MAPPED;
	if (mapped)
		target.flags |= TARGET_MAPPED;
	target.image = p->maps.image;
	/* The entry may be newer than the table: a tick made it after the table was published. */
	if (p->unwind.table)
		target.unwind = p->unwind.table;
	return bpf_map_update_elem(t->map_fd, &key, &target, BPF_EXIST) < 0 ? -errno : 0;
}

int process_targets_set_unwind(const struct process_targets *t, const struct process *p)
{
	struct process_key key = process_key(p);
	struct target target;

	if (bpf_map_lookup_elem(t->map_fd, &key, &target) < 0)
		return -errno;
	target.unwind = p->unwind.table;
	return bpf_map_update_elem(t->map_fd, &key, &target, BPF_EXIST) < 0 ? -errno : 0;
}
