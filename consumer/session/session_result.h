/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_result.h: the data that an ended session passes to the report thread. It owns everything
 * that it points to and has no pointer to the main thread's data.
 */
#ifndef TROCAR_CONSUMER_SESSION_SESSION_RESULT_H
#define TROCAR_CONSUMER_SESSION_SESSION_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/facts/facts_disks.h"
#include "consumer/facts/facts_phases.h"
#include "consumer/output/event_line.h"
#include "consumer/rules/ruleset.h"
#include "consumer/session/held_triggers.h"
#include "consumer/session/oom_kills.h"
#include "consumer/signals/signals.h"
#include "consumer/signals/timeline.h"
#include "consumer/signals/trigger_reason.h"

/* Why a session's pre-roll is shorter than requested. */
enum session_pre_limit {
	PRE_WHOLE,    /* it is not shorter */
	PRE_YOUNG,    /* the watch began, or its last session ended, in that time */
	PRE_UNTICKED, /* sampling of all CPUs began in that time */
	PRE_EVICTED,  /* the recorder had no memory for more */
};

/* The client that ended a session before its time. */
struct session_stopped {
	bool stopped;
	uint32_t uid, pid;
};

struct session_result {
	uint64_t id;
	struct ruleset *set;	 /* a reference: the rule outlives a change of the set */
	const struct rule *rule; /* of that set; NULL for a request by cgroup or pid */
	struct trigger_reason reason;
	char *cgroup; /* path */
	uint64_t cgroup_id;
	uint32_t pre_ms;   /* length of the pre-roll, limited by the recorder's data */
	uint32_t onset_ms; /* the last part of pre_ms, in which the stall had begun */
	enum session_pre_limit pre_limit;
	bool by_process;   /* captures only some processes of its cgroup, or did at some time */
	uint32_t left_out; /* cgroups below its own that were not sampled */
	uint64_t start_ns, stop_ns; /* CLOCK_MONOTONIC */
	struct session_stopped stopped;
	struct signal *signals[SIGNAL_COUNT_]; /* NULL: not wanted */
	struct psi pressure_end;
	bool has_pressure_end;
	struct held_triggers held[CAUSE_COUNT_]; /* in its cgroup, of any rule, while it ran */
	struct facts_phases *facts;		 /* owned; NULL: no memory */
	struct facts_disks
		*disks; /* owned; of the host, at the begin of the report; NULL: unknown */
	struct oom_kills oom_kills;
	struct timeline *timeline; /* owned; NULL: no memory */
	uint64_t owner;		   /* hash of the owner's name, for limits per owner */
	/*
	 * Bytes of stacks that it may not write because its owner has written much (line_bytes.h),
	 * and bytes that it has written. Report thread.
	 */
	uint64_t withheld_bytes, line_bytes;
	struct session_result *next; /* in the report thread's queue */
};

/* Frees it with all that it owns; NULL is allowed. */
void session_result_free(struct session_result *r);

/* Writes `pre_ms`, `pre_ms_reason` if it is shorter than requested, and `onset_ms`. */
void session_result_write_pre(const struct session_result *r, struct jsonw *w);

/* Writes `stopped` if a client ended the session. */
void session_result_write_stopped(const struct session_result *r, struct jsonw *w);

/* Returns the subject of its lines. */
struct event_subject session_result_subject(const struct session_result *r);

/* Returns the begin of the pre-roll, CLOCK_MONOTONIC: the session has no older samples. */
uint64_t session_result_first_ns(const struct session_result *r);

/* Returns the number of stacks, and sets *ret_bytes to their memory. */
size_t session_result_stacks(const struct session_result *r, size_t *ret_bytes);

/* Returns the number of samples counted so far, in all phases and all signals. */
uint64_t session_result_samples(const struct session_result *r);

#endif
