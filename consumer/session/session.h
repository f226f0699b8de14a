/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session.h: the bounded capture that a trigger starts: it makes its slot say capture and the CPUs
 * tick at the full rate, and gives its signals their samples and moments. It knows no watch, no
 * thread and no signal by name. Ended and settled, it becomes a struct session_result. Main thread
 * only.
 */
#ifndef TROCAR_CONSUMER_SESSION_SESSION_H
#define TROCAR_CONSUMER_SESSION_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/cgroup/captured.h"
#include "consumer/sampling/sampler.h"
#include "consumer/session/session_result.h"
#include "consumer/signals/signals.h"

struct owner;

#define SESSIONS_MAX 16 /* running at once */
_Static_assert(SESSIONS_MAX <= CAPTURED_MAX, "each is captured");
#define SESSIONS_ENDED 32 /* remembered for the `sessions` method */

/* A session's time where neither a rule nor a request says it. */
#define SESSION_PRE_MS	  5000
#define SESSION_DURING_MS 3000

struct session {
	struct session_result *result; /* owned, until it is handed over */
	struct signal_target target;
	struct owner *owner; /* whose the cgroup is, the caller's reference; NULL: not known */
	uint32_t during_ms;  /* as asked */
	uint64_t end_ns;     /* to end at */
	bool ending;	     /* waiting for the ring to be drained */
	uint64_t settled_ns; /* a drain after this moment has all that will come */
};

/* What the `sessions` method remembers of an ended one. */
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
	const struct active_rules *active; /* a session keeps its set */
	struct session *running[SESSIONS_MAX];
	size_t count;
	uint64_t total;
	struct session_summary ended[SESSIONS_ENDED];
	size_t n_ended;		  /* in all; the ring holds the last */
	struct captured captured; /* cgroups of those that run */
};

/* What a session is begun with. */
struct session_start {
	const struct trigger_reason *reason; /* copied */
	const struct rule *rule; /* of the set in force; NULL for a request without one */
	const char *cgroup;	 /* copied */
	uint64_t cgroup_id;
	uint32_t slot, epoch;
	bool root;	      /* the cgroup2 root: only the rule's processes count */
	bool by_process;      /* the slot takes matched processes only */
	uint32_t only_tgid;   /* 0: no filter by process */
	uint32_t during_ms;   /* 0: the rule's */
	uint64_t recorded_ns; /* since when the recorder has the slot's samples */
	struct owner *owner;  /* its reference goes to the session where it begins */
};

/* Takes its collaborators, all borrowed. */
void sessions_init(struct sessions *all, const struct signal_host *host, struct sampler *sampler,
		   const struct active_rules *active);

/*
 * Begins a session; its programs are not attached yet. What is in the samples ring by now counts as
 * before. 0; -ENOSPC when SESSIONS_MAX run; -ENOMEM: then nothing has changed.
 */
int session_begin(struct sessions *all, const struct session_start *start,
		  struct session **ret_session);

/* Attaches what its signals want, which may take the time in which a broker starts. */
void session_attach(struct sessions *all, struct session *s);

/* The same for all that run, where it has failed: the broker was late. */
void sessions_attach_again(struct sessions *all);

/* The session that a sample of that slot and epoch may belong to, or NULL. */
struct session *sessions_of_slot(const struct sessions *all, uint32_t slot, uint32_t epoch);

/* Gives it a decoded sample of its slot. False when it does not belong to the session. */
bool session_sample(struct session *s, const struct stack_sample *h, const struct process *p);

/* The slot takes matched processes only from here on: what a cgroup used is no measure any more. */
void session_narrow(struct session *s);

/* Ends it now, whatever is left of its time; the account is closed after the next drain. */
void session_end(struct sessions *all, struct session *s);

/* Ends those whose time is over. True when one was: the rings are to be drained. */
bool sessions_end_due(struct sessions *all, uint64_t now_ns);

/*
 * Takes out one that has ended and whose samples have all come, or have had their time; its account
 * is closed. The caller owns it and its result. NULL when there is none.
 */
struct session *sessions_take_settled(struct sessions *all, uint64_t now_ns);

/* Whether one has ended and waits for its samples. */
bool sessions_settling(const struct sessions *all);

/* Releases it, and the result if it was not handed over; NULL is allowed. */
void session_free(struct session *s);

#endif
