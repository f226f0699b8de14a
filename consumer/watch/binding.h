/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * binding.h: binds rules to a watch. A binding lives as long as a process in the cgroup matches its
 * rule (for a rule by cgroup: as long as the cgroup is populated). When the last such process
 * leaves and the cgroup is not empty, the binding lingers for BINDING_LINGER_NS, so that a process
 * that keeps changing its name does not start and stop watches. Main thread only.
 */
#ifndef TROCAR_CONSUMER_WATCH_BINDING_H
#define TROCAR_CONSUMER_WATCH_BINDING_H

#include <stdint.h>

#include "consumer/watch/watch.h"

#define BINDINGS_MAX	  64		/* rules bound to one cgroup; beyond: an error line */
#define BINDING_LINGER_NS 1000000000ULL /* at least; at most twice that */

/* Creates the linger timer. Returns 0 or -errno. */
int bindings_listen(struct watches *ws, struct loop *loop);

/* Binds `p` through its rule to the watch of its cgroup. Returns 0 or -errno of watch_get. */
int binding_join(struct watches *ws, struct process *p);

/* Binds a rule by cgroup to the watch. Returns 0 or -errno. */
int binding_add_cgroup(struct watch *w, const struct rule *rule);

/* Removes the process from its watch; if it was the last one, its binding lingers. */
void binding_leave(struct process *p);

/* Returns the binding of a rule, or NULL. */
struct binding *binding_find(struct watch *w, const struct rule *rule);

/*
 * Removes the bindings that have no process or cgroup and do not linger. Removes the watch if it
 * has no binding and no request left; `reason` is for watch.stop. Otherwise updates everything that
 * depends on its bindings and on a request that keeps it.
 */
void bindings_release(struct watch *w, const char *reason);

/* Removes watches and bindings that have lingered long enough. The timer calls it. */
void bindings_expire(struct watches *ws);

/* Call after a change of bindings: updates the kernel's flags and calls watch_calls.changed. */
void bindings_refresh(struct watch *w);

/*
 * Call after a new rule set: points bindings to its rules, and removes bindings that have lost
 * their rule, or have a rule by cgroup that no longer applies to this cgroup. *ret_unchanged counts
 * the watches that continue unchanged.
 */
void bindings_rebind(struct watches *ws, const struct rules *fresh, uint32_t *ret_unchanged);

#endif
