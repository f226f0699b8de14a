/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session.h: a session, the bounded capture that a trigger starts. It sets its slot to capture,
 * makes the CPUs tick at the full rate, and calls its signals at begin and end and for each sample.
 * It has no code for any single watch, thread or signal. When it has ended and all its samples have
 * arrived, it becomes a struct session_result. Main thread only.
 */
#ifndef TROCAR_CONSUMER_SESSION_SESSION_H
#define TROCAR_CONSUMER_SESSION_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/cgroup/captured.h"
#include "consumer/cgroup/cgroup_names.h"
#include "consumer/facts/facts_record.h"
#include "consumer/sampling/sampler.h"
#include "consumer/session/session_result.h"
#include "consumer/signals/signals.h"

struct owner;

#define SESSIONS_MAX 16 /* running at once */
_Static_assert(SESSIONS_MAX <= CAPTURED_MAX, "each is captured");
#define SESSIONS_ENDED 32 /* remembered for the `sessions` method */

/* A session's length where neither a rule nor a request gives one. */
#define SESSION_PRE_MS	  5000
#define SESSION_DURING_MS 3000

struct session {
	struct session_result *result; /* owned until handed over */
	struct signal_target target;
	struct owner *owner; /* of the cgroup, a reference; NULL: unknown */
	uint32_t during_ms;  /* as requested, or shorter if the budgets leave less */
	/* Why during_ms is shorter than requested; a literal; NULL: it is not shorter. */
	const char *during_reason;
	uint64_t end_ns;	   /* CLOCK_MONOTONIC */
	bool preparing;		   /* its time is over, but its signals are still reading */
	struct cgroup_names names; /* paths for its lines */
	bool ending;		   /* has ended; waits until the ring is drained */
	uint64_t settled_ns;	   /* a drain after this time has delivered all its samples */
};

/* An ended session as reported by the method `sessions`. */
struct session_summary {
	uint64_t id;
	char rule[RULE_NAME_BYTES];
	char cgroup[256];
	enum trigger_kind trigger;
	uint64_t end_ns;
	uint64_t samples;
};

struct sessions {
	struct signal_host host;
	struct sampler *sampler;	   /* borrowed, as the next two */
	struct facts_reader *facts;	   /* NULL: no facts are read */
	const struct active_rules *active; /* a session keeps a reference to its rule set */
	struct session *running[SESSIONS_MAX];
	size_t count;
	uint64_t total;
	struct session_summary ended[SESSIONS_ENDED];
	size_t n_ended;		  /* in total; the array holds the last ones */
	struct captured captured; /* cgroups of the running ones */
	struct stack_budget
		stacks; /* stacks of running sessions, and of ended ones until they are written */
};

/* The caller's parameters for a new session. */
struct session_start {
	const struct trigger_reason *reason; /* copied */
	const struct rule *rule; /* of the active rule set; NULL for a request without one */
	const char *cgroup;	 /* copied */
	uint64_t cgroup_id;
	uint32_t slot, epoch;
	bool root;		   /* the cgroup2 root: only the rule's processes count */
	bool by_process;	   /* the slot takes matched processes only */
	bool shared;		   /* the slot takes more than this session wants */
	uint32_t only_tgid;	   /* 0: no filter by process */
	uint32_t during_ms;	   /* 0: the rule's */
	const char *during_reason; /* why during_ms is shorter than requested; a literal, or NULL */
	uint64_t recorded_ns;	   /* the recorder has the slot's samples since */
	struct owner *owner;	   /* a reference; the session takes it when it begins */
	const struct counter_history *counters; /* of the slot; borrowed */
	const struct facts_record *facts;	/* of the cgroup; borrowed */
};

/* Stores its collaborators, all borrowed. */
void sessions_init(struct sessions *all, const struct signal_host *host, struct sampler *sampler,
		   const struct active_rules *active);

/*
 * Begins a session; session_attach attaches its programs. Drain first: samples that are in the ring
 * now count for the time before. Returns 0; -ENOSPC if SESSIONS_MAX run; or -ENOMEM. On failure
 * nothing has changed.
 */
int session_begin(struct sessions *all, const struct session_start *start,
		  struct session **ret_session);

/*
 * Takes off-CPU samples for sessions that have just begun. Call before session_attach: the first
 * sample is of the moment of the trigger, and a broker may take a tenth of a second.
 */
void session_look_first(struct sessions *all);

/*
 * Attaches the programs of the session's signals, which may take as long as a broker takes to
 * start.
 */
void session_attach(struct sessions *all, struct session *s);

/*
 * Retries, in all running sessions, to attach the signals that do not run because the broker was
 * late.
 */
void sessions_attach_again(struct sessions *all);

/* Returns the session to which a sample of `slot` and `epoch` may belong, or NULL. */
struct session *sessions_of_slot(const struct sessions *all, uint32_t slot, uint32_t epoch);

/*
 * Returns whether a trigger of this cause and rule began the session. Rules of different sets are
 * the same if they have the same name and content.
 */
bool session_is_of(const struct session *s, const struct rule *rule, enum trigger_cause cause);

/*
 * Call when a new rule set is active: points the running sessions to its identical rules, so that a
 * session by process continues with the processes of its rule.
 */
void sessions_rebind(struct sessions *all, const struct rules *fresh);

/*
 * Passes a decoded sample of its slot to the session. Returns false if it does not belong to the
 * session.
 */
bool session_sample(struct session *s, const struct stack_sample *h, const struct process *p);

/* Passes a thread of its slot that a sampling pass found waiting to the session. */
void session_look(struct session *s, const struct look_pass *pass, const struct look_seen *seen);

/* Notifies all sessions that a sampling pass has ended. */
void sessions_passed(struct sessions *all, const struct look_pass *pass);

/*
 * Records that the slot takes matched processes only from now on: the expected samples no longer
 * follow from the cgroup's CPU time.
 */
void session_narrow(struct session *s);

/*
 * Records that the slot takes more than the session from now on: the kernel side's counts by slot
 * are no longer the session's alone.
 */
void session_share(struct session *s);

/*
 * Reads the facts of the running sessions again (FACTS_AGAIN_NS). A cgroup that is removed keeps
 * its last reading. Call after each drain.
 */
void sessions_read_facts(struct sessions *all, uint64_t now_ns);

/* Ends the session now, even before its time. Its ledger is closed after the next drain. */
void session_end(struct sessions *all, struct session *s);

/*
 * Ends the sessions that have reached their end, once their signals have finished readings that
 * take several iterations. Returns true if it ended one: the caller then drains the rings.
 */
bool sessions_end_due(struct sessions *all, uint64_t now_ns);

/*
 * Removes one ended session from `all`, after all its samples have arrived or SETTLE_NS have
 * passed, and closes its ledger. The caller owns the session and its result. NULL if there is none.
 */
struct session *sessions_take_settled(struct sessions *all, uint64_t now_ns);

/* Returns the start_ns of the oldest running session; UINT64_MAX if none runs. */
uint64_t sessions_oldest_ns(const struct sessions *all);

/*
 * Returns whether a session is about to end and its signals have more to read, which the next
 * iteration continues.
 */
bool sessions_preparing(const struct sessions *all);

/* Returns whether a session has ended and still waits for its samples. */
bool sessions_settling(const struct sessions *all);

/* Frees the session, and its result unless that was handed over; NULL is allowed. */
void session_free(struct session *s);

#endif
