/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch_tree.h: a watch takes the cgroups below its own too, as the kernel counts pressure and CPU
 * time. The kernel side keeps their entries in `watches`: a new cgroup takes over its parent's
 * entry, and one walk of the whole hierarchy, which the consumer asks for here, puts all of them
 * right (bpf/watch/watch_tree.h). A cgroup within two watches belongs to the inner one, and that
 * slot names the outer one: both get its samples.
 *
 * The kernel walks with cgroup_mutex held, which every process that makes, removes or enters
 * cgroups needs: 300 ms have been seen. So a thread of lookup_pool.h walks, and the main loop waits
 * for it for a moment only. All functions are for the main thread.
 */
#ifndef TROCAR_CONSUMER_WATCH_WATCH_TREE_H
#define TROCAR_CONSUMER_WATCH_WATCH_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/io/loop.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/watch/watch.h"

/* Makes the timer of the walk. 0 or -errno. */
int watch_tree_listen(struct watches *ws, struct loop *loop);

/* Ends the wait for a walk that still runs, and frees the members. */
void watch_tree_done(struct watches *ws);

/* Deletes all entries: an earlier consumer left them. 0 or -errno. */
int watch_tree_clear(const struct pinned_maps *pins);

/* Returns `outer` (abi.h) of the slot of a watch that is about to be entered for that cgroup. */
uint32_t watch_tree_outer(const struct watches *ws, uint64_t cgroup_id);

/*
 * Enters the watch; the cgroups below follow with the walk, in the next turn of the loop or in
 * watch_tree_settle. 0 or -errno.
 */
int watch_tree_enter(struct watch *w);

/*
 * Leaves the entries that name the watch to the next walk, which gives them to the watch around it
 * or deletes them. Until it has ended no other watch may have the slot (watch_tree_is_free).
 */
void watch_tree_leave(struct watch *w);
bool watch_tree_is_free(const struct watches *ws, uint32_t slot);

/*
 * Has the tree walked now if a watch has come or gone since the last walk began, or if one lacks
 * cgroups below it; waits for that as long as the turn of the loop allows (lookup_pool.h). A walk
 * that is late goes on, and the loop's timer takes its end. Where a watch was refused for want of a
 * slot that the walk has freed, a scan follows.
 */
void watch_tree_settle(struct watches *ws);

/* Returns the nearest watch at or above that cgroup, or NULL. */
struct watch *watch_tree_find(const struct watches *ws, uint64_t cgroup_id);

/* Returns the next watch around `w`, or NULL. */
struct watch *watch_tree_above(const struct watch *w);

#endif
