/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch.h: cgroups under observation. A watch is one cgroup in one slot; binding.h has the rules
 * that keep it. Main thread only.
 */
#ifndef TROCAR_CONSUMER_WATCH_WATCH_H
#define TROCAR_CONSUMER_WATCH_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/facts/facts_record.h"
#include "consumer/io/loop.h"
#include "consumer/io/schedule.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/output/event_log.h"
#include "consumer/process/process.h"
#include "consumer/rules/shares.h"
#include "consumer/sampling/counter_history.h"
#include "consumer/sampling/sampler.h"
#include "consumer/session/session.h"
#include "consumer/watch/scope.h"
#include "shared/abi/abi.h"
#include "shared/rules/rules.h"
#include "shared/tools/idmap.h"

/* One rule bound to one watch. */
struct binding {
	const struct rule *rule;
	uint32_t processes; /* matching processes that keep the binding alive */
	bool by_cgroup;	    /* the cgroup itself matches */
	uint64_t loose_ns;  /* since when nothing keeps it alive; 0: something does */
};

static inline bool binding_is_kept(const struct binding *b)
{
	return b->by_cgroup || b->processes;
}

struct watch {
	struct watches *all;
	uint64_t cgroup_id;
	char *path;	     /* owned */
	struct owner *owner; /* of the cgroup, a reference; NULL: unknown */
	uint32_t slot, epoch;
	uint64_t tree_walk;	      /* the walk during which it was entered; 0: none ran */
	struct slot_counters counted; /* the slot's counters that `health` has already counted */
	struct counter_history counters;
	struct facts_record facts;
	bool root; /* the cgroup2 root: only matching processes, the whole system's pressure */
	bool by_process; /* the kernel side takes matched processes only */
	bool requested;	 /* a request's session keeps it alive */
	uint64_t start_ns;
	uint64_t emptied_ns; /* when its last matching process left; 0: never */
	/* The recorder has its samples since this time: its start, or the end of a session. */
	uint64_t recorded_ns;
	uint64_t sessions;	  /* started so far */
	uint64_t scan;		  /* number of the last scan that found a process in it */
	struct session *session;  /* running, or NULL; borrowed */
	struct binding *bindings; /* owned */
	size_t n_bindings;
	bool rules_full_said;
	struct ruleset *set;	 /* a reference, for watch.stop when no rule is bound any more */
	const struct rule *rule; /* of that set: the first bound rule, or NULL */
};

/* Calls of watch.c when watches start, change and stop, in this order. */
struct watch_calls {
	void (*changed)(void *context, struct watch *w); /* its rules or its slot's mode */
	void (*started)(void *context, struct watch *w); /* its first rule is bound */
	/* It is out of all tables and about to be freed. `reason` is for watch.stop. */
	void (*stopped)(void *context, struct watch *w, const char *reason);
};

/* The walks of watch_tree.h, numbered from 1. */
struct tree_walks {
	struct tree_walk *running; /* owned; NULL: no walk runs */
	bool due;		   /* a watch has started or stopped since the last walk began */
	bool wanted;		   /* a watch was refused that could use the next free slot */
	uint64_t begun, ended;	   /* numbers of the last walks */
	uint64_t *frees;	   /* owned; by slot: entries name it until this walk has ended */
	uint64_t failed_ns;	   /* last failure that a line reported */
	uint64_t due_ns;	   /* the next walk without a request may begin then */
};

/* Collaborators are borrowed. */
struct watches {
	const struct pinned_maps *pins;
	const struct event_log *log;
	struct sampler *sampler;
	struct schedule *schedule;
	struct scope *scope;
	struct shares *shares;
	struct sessions *sessions;
	struct processes *processes;
	struct facts_reader *facts; /* NULL: no facts are read */
	const struct watch_calls *calls;
	void *context;			  /* the first argument of the calls */
	struct loop_source *linger_timer; /* owned */
	struct loop_source *tree_timer;	  /* owned; for watch_tree.h, as the next member */
	struct tree_walks tree;
	struct idmap by_cgroup;
	struct watch **by_slot; /* owned; pins->abi.slots elements, NULL if free */
	uint32_t *epochs;	/* owned; of each slot */
	uint32_t next;		/* start of the search for a free slot */
	uint32_t facts_next;	/* slot for the next reading of facts */
	uint64_t facts_ns;	/* last reading of facts */
	uint32_t count;
	bool lingering; /* the timer is set */
	/* The cgroup that a watch was displaced for, whose slot was not free yet; 0: none. */
	uint64_t promised_id;
	uint64_t promised_ns; /* when it was displaced */
	uint64_t refused;     /* cgroups without a slot since the last line */
	uint64_t full_ns;     /* when that line was written */
};

/* Allocates the tables; set the collaborators of *ws first. Returns 0 or -ENOMEM. */
int watches_init(struct watches *ws);
void watches_done(struct watches *ws);

/*
 * Returns the watch of the cgroup; creates it if there is none. If no slot is free, it takes the
 * slot of a watch that has to give way (shares.h). Returns 0; -ENOENT (cgroup gone); -ENOSPC (no
 * slot); -EXDEV (outside of the loader's --scope); -errno.
 */
int watch_get(struct watches *ws, uint64_t cgroup_id, uint32_t pid_hint, struct watch **ret_watch);

/* Returns the watch in that slot if it still has that epoch; else NULL. */
struct watch *watches_at(const struct watches *ws, uint32_t slot, uint32_t epoch);

/* Reads the counters of each watch with a last reading that is at least COUNTER_APART_NS old. */
void watches_note_counters(struct watches *ws);

/* Ends the watch now: ends its session and frees its slot; watch.stop has `reason`. */
void watch_remove(struct watch *w, const char *reason);

/* Returns the flags of the watch's slot (enum slot_flag). */
uint32_t watch_slot_flags(const struct watch *w);

/*
 * Returns whether the watch's slot takes more than a session wants: more than process `only_tgid`,
 * or, if that is 0, more than `rule` (NULL: the whole cgroup): processes other than the rule's, if
 * the rule captures only its own processes.
 */
bool watch_shares_slot(const struct watch *w, const struct rule *rule, uint32_t only_tgid);

/* Returns whether only its linger time keeps the watch. */
bool watch_lingers(const struct watch *w);

#endif
