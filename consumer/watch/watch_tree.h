/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch_tree.h: makes a watch include the cgroups below its own, as the kernel does for pressure
 * and CPU time. The kernel side keeps their entries in `watches`: a new cgroup inherits its
 * parent's entry, and one walk of the whole hierarchy, which the consumer requests here, corrects
 * all of them (bpf/watch/watch_tree.h). A cgroup inside two watches belongs to the inner one, and
 * that slot names the outer one: both get its samples.
 *
 * The kernel walks with cgroup_mutex held, which every process that makes, removes or enters
 * cgroups needs: 300 ms have been seen. So a thread of lookup_pool.h does the walk, and the main
 * loop waits for it only briefly. All functions are for the main thread.
 */
#ifndef TROCAR_CONSUMER_WATCH_WATCH_TREE_H
#define TROCAR_CONSUMER_WATCH_WATCH_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/io/loop.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/watch/watch.h"

/* Creates the timer of the walk. Returns 0 or -errno. */
int watch_tree_listen(struct watches *ws, struct loop *loop);

/* Stops waiting for a running walk, and frees the members. */
void watch_tree_done(struct watches *ws);

/* Deletes all entries, which an earlier consumer left. Returns 0 or -errno. */
int watch_tree_clear(const struct pinned_maps *pins);

/* Returns `outer` (abi.h) for the slot of a watch that is about to be entered for the cgroup. */
uint32_t watch_tree_outer(const struct watches *ws, uint64_t cgroup_id);

/*
 * Enters the watch. The walk adds the cgroups below it, in the next iteration of the loop or in
 * watch_tree_settle. Returns 0 or -errno.
 */
int watch_tree_enter(struct watch *w);

/*
 * Leaves the entries that name the watch to the next walk, which assigns them to the enclosing
 * watch or deletes them. No other watch may use the slot until that walk has ended
 * (watch_tree_is_free).
 */
void watch_tree_leave(struct watch *w);
bool watch_tree_is_free(const struct watches *ws, uint32_t slot);

/*
 * Starts a walk if a watch has started or stopped since the last walk began, or if a watch lacks
 * cgroups below it. Waits for it within the loop's time slice (lookup_pool.h); a late walk
 * continues, and the loop's timer takes its result. If a watch was refused for lack of a slot that
 * the walk has freed, a scan follows.
 */
void watch_tree_settle(struct watches *ws);

/* Returns the nearest watch at or above the cgroup, or NULL. */
struct watch *watch_tree_find(const struct watches *ws, uint64_t cgroup_id);

/* Returns the next watch that encloses `w`, or NULL. */
struct watch *watch_tree_above(const struct watch *w);

#endif
