/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch.h: cgroups under observation. A watch is one cgroup in one slot; rules are bound to it,
 * each alive as long as a process matches it there (or, for a rule by cgroup, as long as the cgroup
 * is populated). When the last such process goes and the cgroup is not empty, the rule stays bound
 * for WATCH_LINGER_NS more: a process that takes its name again and again makes no watch start and
 * stop. Main thread only.
 */
#ifndef TROCAR_CONSUMER_WATCH_H
#define TROCAR_CONSUMER_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/psi.h"
#include "shared/abi.h"
#include "shared/idmap.h"
#include "shared/rules.h"

struct agent;
struct owner;
struct process;
struct ruleset;
struct session;
struct threshold;

#define WATCH_RULES_MAX 64	      /* rules bound to one cgroup; beyond: an error line */
#define WATCH_LINGER_NS 1000000000ULL /* at least; at most twice that */

/* One rule on one watch. */
struct binding {
	const struct rule *rule;
	uint32_t processes;   /* matched ones that keep it alive */
	bool by_cgroup;	      /* the cgroup itself matches */
	uint64_t loose_ns;    /* since when nothing keeps it alive, 0: something does */
	uint64_t cooldown_ns; /* no session before this moment */
	uint32_t held;	      /* triggers held back since the last line that said so */
	uint64_t held_ns;     /* when that line was written */
};

struct watch {
	struct agent *agent;
	uint64_t cgroup_id;
	char *path;	     /* owned */
	struct owner *owner; /* whose the cgroup is, a reference; NULL: not known */
	uint32_t slot, epoch;
	struct slot_counters counted; /* of the slot, as far as health.h has taken it over */
	bool root;	 /* the cgroup2 root: by process, with the pressure of the whole system */
	bool by_process; /* the kernel side takes matched processes only */
	bool requested;	 /* kept alive by a request's session */
	uint64_t start_ns;
	uint64_t recorded_ns; /* since when the recorder has its samples: its start, or the end of a
				 session */
	uint64_t sessions;    /* started so far */
	uint64_t scan;	      /* number of the last scan that found a process in it */
	struct session *session;  /* running, or NULL */
	struct binding *bindings; /* owned */
	size_t n_bindings;
	bool rules_full_said;
	struct ruleset *set; /* a reference: what watch.stop says when no rule is bound any more */
	const struct rule *rule;      /* of that set, the first that was bound, or NULL */
	struct threshold *thresholds; /* of all bindings, each once; owned */
	struct watch_pressure {
		int fd;			      /* -1: not followed, or not readable */
		bool said;		      /* that it is not readable */
		bool again;		      /* somebody held up the look for it */
		uint32_t by_trigger, by_scan; /* thresholds, by what follows them */
		struct psi_history history;
	} pressure[RESOURCE_COUNT_];
};

struct watches {
	struct idmap by_cgroup;
	struct watch **by_slot; /* abi.slots, NULL where free */
	uint32_t *epochs;	/* of each slot */
	uint32_t next;		/* where the search for a free slot starts */
	uint32_t count;
	bool lingering;	  /* the timer is set */
	uint64_t refused; /* cgroups that found no slot since that was said */
	uint64_t full_ns; /* when it was said */
};

int watches_init(struct agent *a);
void watches_done(struct agent *a);

/*
 * The watch of that cgroup, made when it is new. Where no slot is left it takes the place of
 * another that has to give way (sharing.h). 0; -ENOENT (cgroup gone); -ENOSPC (no slot); -errno.
 */
int watch_get(struct agent *a, uint64_t cgroup_id, uint32_t pid_hint, struct watch **ret_watch);

/* Binds `p` through its rule to the watch of its cgroup. 0 or as watch_get. */
int watch_join(struct agent *a, struct process *p);

/* Binds a rule by cgroup to the watch. 0 or -errno. */
int watch_bind_cgroup(struct watch *w, const struct rule *rule);

/* The process leaves its watch, whose rule lingers if it was the last. */
void watch_leave(struct agent *a, struct process *p);

/* Drops what has lingered long enough: what the timer calls. */
void watches_expire(struct agent *a);

/* Makes that timer. 0 or -errno. */
int watches_listen(struct agent *a);

/* Ends the watch now: its session ends, the slot is free, watch.stop says why. */
void watch_remove(struct watch *w, const char *reason);

/*
 * Drops rules that nothing keeps and that do not linger, and the watch when neither a rule nor a
 * request is left: `reason` is for watch.stop.
 */
void watch_release(struct watch *w, const char *reason);

/* Whether nothing keeps it but that it lingers. */
bool watch_lingers(const struct watch *w);

/* The binding of a rule, or NULL. */
struct binding *watch_binding(struct watch *w, const struct rule *rule);

/* After a change of bindings: kernel flags, pressure files, scan interval. */
void watch_refresh(struct watch *w);

/* After a new rule set: points bindings to the new rules, drops those that are gone. */
void watches_rebind(struct agent *a, const struct rules *fresh, uint32_t *ret_unchanged);

/* Writes watch.start; once, when the first rule is bound. */
void watch_say_start(const struct watch *w);

/* Writes watch.stop. */
void watch_say_stop(const struct watch *w, const char *reason);

/* Writes the element of the `watches` method. */
void watch_write(const struct watch *w, struct jsonw *json);

#endif
