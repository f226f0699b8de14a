/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * binding.h: the rules of a watch. Each is alive as long as a process matches it there (or, for a
 * rule by cgroup, as long as the cgroup is populated). When the last such process goes and the
 * cgroup is not empty, the rule stays bound for BINDING_LINGER_NS more: a process that takes its
 * name again and again makes no watch start and stop. Main thread only.
 */
#ifndef TROCAR_CONSUMER_WATCH_BINDING_H
#define TROCAR_CONSUMER_WATCH_BINDING_H

#include <stdint.h>

#include "consumer/watch/watch.h"

#define BINDINGS_MAX	  64		/* rules bound to one cgroup; beyond: an error line */
#define BINDING_LINGER_NS 1000000000ULL /* at least; at most twice that */

/* Makes the timer of those that linger. 0 or -errno. */
int bindings_listen(struct watches *ws, struct loop *loop);

/* Binds `p` through its rule to the watch of its cgroup. 0 or as watch_get. */
int binding_join(struct watches *ws, struct process *p);

/* Binds a rule by cgroup to the watch. 0 or -errno. */
int binding_add_cgroup(struct watch *w, const struct rule *rule);

/* The process leaves its watch, whose rule lingers if it was the last. */
void binding_leave(struct process *p);

/* The binding of a rule, or NULL. */
struct binding *binding_find(struct watch *w, const struct rule *rule);

/*
 * Drops rules that nothing keeps and that do not linger, and the watch when neither a rule nor a
 * request is left: `reason` is for watch.stop.
 */
void bindings_release(struct watch *w, const char *reason);

/* Drops what has lingered long enough: what the timer calls. */
void bindings_expire(struct watches *ws);

/* After a change of bindings: kernel flags, and what follows from them. */
void bindings_refresh(struct watch *w);

/* After a new rule set: points bindings to the new rules, drops those that are gone. */
void bindings_rebind(struct watches *ws, const struct rules *fresh, uint32_t *ret_unchanged);

#endif
