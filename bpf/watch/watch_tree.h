/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * watch_tree.h: enters the descendants of watched cgroups into `watches`, so that a tick finds its
 * watch by one lookup of its own cgroup. A new cgroup inherits its parent's entry. A walk of the
 * hierarchy corrects all entries after a watch is added or removed. The kernel calls both with
 * cgroup_mutex held (cgroup_mkdir and cgroup_rmdir of kernel/cgroup/cgroup.c, cgroup_iter_seq_start
 * of kernel/bpf/cgroup_iter.c), so they exclude each other, and no cgroup is missed.
 */
#ifndef TROCAR_BPF_WATCH_WATCH_TREE_H
#define TROCAR_BPF_WATCH_WATCH_TREE_H

#include <linux/errno.h>

#include <bpf/bpf_core_read.h>

#include "bpf/kernel/kernel.h"
#include "bpf/maps/error_ring.h"
#include "bpf/maps/maps.h"
#include "bpf/watch/watch_lookup.h"

/*
 * Maximum number of descendants with an entry. The loader leaves space for the watched cgroups
 * themselves.
 */
const volatile __u32 watch_room __weak = SLOTS_DEFAULT * (WATCH_CGROUPS - 1);

/* Private: the number of descendants with an entry. */
__weak MAP(ARRAY, watch_entered, __u32, __u32, 1);

/* Returns the entry that `cgroup` and its siblings inherit from their parent, or NULL. */
static __always_inline const struct watch_entry *watch_tree_above(struct cgroup *cgroup)
{
	struct cgroup_subsys_state *parent = BPF_CORE_READ(cgroup, self.parent);
	const struct watch_entry *entry;
	__u64 id;

	if (!parent)
		return 0;
	id = BPF_CORE_READ(parent, cgroup, kn, id);
	entry = bpf_map_lookup_elem(&watches, &id);
	return entry && !(READ_WORD(entry->flags) & WATCH_ALONE) ? entry : 0;
}

/* Counts a cgroup that the watch of slot `index` and the watches around it do not cover. */
static __always_inline void leave_out(__u32 index)
{
	__u32 nearest = index;
	struct slot *slot;

	TOTALS_COUNT(watches_full);
	watch_for_each (slot, index)
		__sync_fetch_and_add(&slot->left_out, 1);
	error_ring_put(ERROR_WATCHES_FULL, -E2BIG, nearest, NO_SLOT, 0);
}

/* Enters a cgroup that has no entry as a descendant of the watch of `above`. */
static __always_inline void watch_tree_enter(__u64 id, const struct watch_entry *above)
{
	struct watch_entry entry = { .slot = READ_WORD(above->slot) };
	__u32 *entered = map_single(&watch_entered);

	if (!entered)
		return;
	if (*entered >= watch_room || bpf_map_update_elem(&watches, &id, &entry, BPF_NOEXIST)) {
		leave_out(entry.slot);
		return;
	}
	++*entered;
}

/* Deletes the entry of cgroup `id`; `entry` is that entry. */
static __always_inline void watch_tree_delete(__u64 id, const struct watch_entry *entry)
{
	__u32 *entered = map_single(&watch_entered);

	if (entered && *entered && !(READ_WORD(entry->flags) & WATCH_OWN))
		--*entered;
	bpf_map_delete_elem(&watches, &id);
}

/*
 * Sets the watch around that of a watched cgroup. If more than WATCHES_NESTED watches are nested,
 * counts the cgroup for the first one that is too far out to get its samples.
 */
static __always_inline void set_outer(const struct watch_entry *entry,
				      const struct watch_entry *above)
{
	__u32 index = READ_WORD(entry->slot);
	struct slot *slot = bpf_map_lookup_elem(&slots, &index);

	if (!slot)
		return;
	slot->outer = above ? READ_WORD(above->slot) + 1 : 0;
	slot->left_out = 0;
	for (int i = 0; i < WATCHES_NESTED; i++) {
		if (!READ_WORD(slot->outer))
			return;
		index = READ_WORD(slot->outer) - 1;
		slot = bpf_map_lookup_elem(&slots, &index);
		if (!slot)
			return;
	}
	leave_out(index);
}

/*
 * Keeps the entry of a cgroup below a watch if there is space. The walk counts anew: it may have
 * entered other cgroups before this one, and descendants must not take the space of watched
 * cgroups.
 */
static __always_inline void keep_below(__u64 id, struct watch_entry *entry,
				       const struct watch_entry *above)
{
	__u32 slot = READ_WORD(above->slot), *entered = map_single(&watch_entered);

	if (!entered)
		return;
	if (*entered >= watch_room) {
		bpf_map_delete_elem(&watches, &id);
		leave_out(slot);
		return;
	}
	entry->slot = slot;
	++*entered;
}

/* Corrects the entry of one cgroup. The walk has already corrected that of its parent. */
static __always_inline void watch_tree_visit(struct cgroup *cgroup)
{
	__u64 id = BPF_CORE_READ(cgroup, kn, id);
	const struct watch_entry *above = watch_tree_above(cgroup);
	struct watch_entry *entry = bpf_map_lookup_elem(&watches, &id);

	if (entry && READ_WORD(entry->flags) & WATCH_OWN) {
		set_outer(entry, above);
	} else if (entry && !above) {
		bpf_map_delete_elem(&watches, &id);
	} else if (entry) {
		keep_below(id, entry, above);
	} else if (above) {
		watch_tree_enter(id, above);
	}
}

#endif
