/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session.h: a session, the bounded capture that a trigger starts. It sets its slot to capture, has
 * the CPUs tick at the full rate, and calls its signals with their samples and at begin and end. It
 * knows no watch, no thread and no signal by name. When it has ended and all its samples have come
 * it becomes a struct session_result. Main thread only.
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
	struct owner *owner; /* of the cgroup, a reference; NULL: not known */
	uint32_t during_ms;  /* as asked, or as much as the budgets leave */
	/* why that is less than was asked; a literal; NULL: it is not */
	const char *during_reason;
	uint64_t end_ns;	   /* CLOCK_MONOTONIC */
	bool preparing;		   /* its time is over, and its signals still read */
	struct cgroup_names names; /* that its lines have */
	bool ending;		   /* has ended; waits until the ring is drained */
	uint64_t settled_ns;	   /* a drain after this time has all its samples */
};

/* What the method `sessions` reports of an ended session. */
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
	struct sampler *sampler;	   /* borrowed, as the next */
	struct facts_reader *facts;	   /* NULL: no facts are read */
	const struct active_rules *active; /* a session keeps a reference to its rule set */
	struct session *running[SESSIONS_MAX];
	size_t count;
	uint64_t total;
	struct session_summary ended[SESSIONS_ENDED];
	size_t n_ended;		    /* in all; the array holds the last */
	struct captured captured;   /* cgroups of the running ones */
	struct stack_budget stacks; /* of these, and of ended ones until they are written */
};

/* What the caller gives to begin a session. */
struct session_start {
	const struct trigger_reason *reason; /* copied */
	const struct rule *rule; /* of the set in force; NULL for a request without one */
	const char *cgroup;	 /* copied */
	uint64_t cgroup_id;
	uint32_t slot, epoch;
	bool root;		   /* the cgroup2 root: only the rule's processes count */
	bool by_process;	   /* the slot takes matched processes only */
	bool shared;		   /* the slot takes more than this session is to have */
	uint32_t only_tgid;	   /* 0: no filter by process */
	uint32_t during_ms;	   /* 0: the rule's */
	const char *during_reason; /* why it is less than was asked; a literal, or NULL */
	uint64_t recorded_ns;	   /* the recorder has the slot's samples since */
	struct owner *owner;	   /* a reference; the session takes it when it begins */
	const struct counter_history *counters; /* of the slot; borrowed */
	const struct facts_record *facts;	/* of the cgroup; borrowed */
};

/* Stores its collaborators, all borrowed. */
void sessions_init(struct sessions *all, const struct signal_host *host, struct sampler *sampler,
		   const struct active_rules *active);

/*
 * Begins a session; session_attach attaches its programs. Drain before: samples that are in the
 * ring now count as before. Returns 0; -ENOSPC when SESSIONS_MAX run; or -ENOMEM. On failure
 * nothing has changed.
 */
int session_begin(struct sessions *all, const struct session_start *start,
		  struct session **ret_session);

/*
 * Looks at the threads of sessions that have just begun. Call before session_attach: the first look
 * is of the moment of the trigger, and a broker may take a tenth of a second.
 */
void session_look_first(struct sessions *all);

/* Attaches the programs of its signals, which may take as long as a broker takes to start. */
void session_attach(struct sessions *all, struct session *s);

/* Attaches again in all running sessions the signals that do not run: the broker was late. */
void sessions_attach_again(struct sessions *all);

/* Returns the session to which a sample of that slot and epoch may belong, or NULL. */
struct session *sessions_of_slot(const struct sessions *all, uint32_t slot, uint32_t epoch);

/*
 * Returns whether a trigger of this cause and rule began it. The rule is the same when it has the
 * same name and content, also in another set.
 */
bool session_is_of(const struct session *s, const struct rule *rule, enum trigger_cause cause);

/*
 * Call when a new rule set is in force: points the running sessions to its rules that are the same,
 * so that a session by process goes on with the processes of its rule.
 */
void sessions_rebind(struct sessions *all, const struct rules *fresh);

/* Gives it a decoded sample of its slot. False when the sample does not belong to the session. */
bool session_sample(struct session *s, const struct stack_sample *h, const struct process *p);

/* Gives it a thread of its slot that a look found waiting. */
void session_look(struct session *s, const struct look_pass *pass, const struct look_seen *seen);

/* Tells all sessions that a pass of looks has ended. */
void sessions_passed(struct sessions *all, const struct look_pass *pass);

/*
 * Records that the slot takes matched processes only from now on: the cgroup's CPU time no longer
 * gives the expected samples.
 */
void session_narrow(struct session *s);

/*
 * Records that the slot takes more than the session from now on: what the kernel side counts by
 * slot is no longer the session's alone.
 */
void session_share(struct session *s);

/*
 * Reads the facts of the running sessions again (FACTS_AGAIN_NS): a cgroup that is removed keeps
 * its last reading. Call after each drain.
 */
void sessions_read_facts(struct sessions *all, uint64_t now_ns);

/* Ends the session now, before its time if need be. Its ledger is closed after the next drain. */
void session_end(struct sessions *all, struct session *s);

/*
 * Ends the sessions after their time, once their signals have finished readings of several turns.
 * True when it ended one: the caller then drains the rings.
 */
bool sessions_end_due(struct sessions *all, uint64_t now_ns);

/*
 * Takes one ended session out of `all`: all its samples have come, or SETTLE_NS has passed; closes
 * its ledger. The caller owns the session and its result. NULL when there is none.
 */
struct session *sessions_take_settled(struct sessions *all, uint64_t now_ns);

/* Returns the start_ns of the oldest running session; UINT64_MAX: none runs. */
uint64_t sessions_oldest_ns(const struct sessions *all);

/*
 * Returns whether a session is to end with signals that have more to read: the next turn goes on.
 */
bool sessions_preparing(const struct sessions *all);

/* Returns whether a session has ended and waits for its samples. */
bool sessions_settling(const struct sessions *all);

/* Frees it, and its result unless that was handed over; NULL is allowed. */
void session_free(struct session *s);

#endif
