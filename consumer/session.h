/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session.h: the bounded capture that a trigger starts: pre-roll, during, and its account. The main
 * thread runs it; ended, it goes to the reporter, which names its stacks and writes its lines.
 *
 * The account: every attempt of the sampler carries a number per slot and CPU (sample.seq). `first`
 * is the number at which the session began on each CPU, `last` the one at which it ended; what lies
 * between and did not arrive is lost, and the kernel's counters say why.
 */
#ifndef TROCAR_CONSUMER_SESSION_H
#define TROCAR_CONSUMER_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/account.h"
#include "consumer/psi.h"
#include "consumer/ruleset.h"
#include "consumer/stacks.h"
#include "consumer/switches.h"
#include "shared/rules.h"

struct agent;
struct watch;
struct process;

#define SESSIONS_MAX	16 /* running at once */
#define SESSIONS_ENDED	32 /* remembered for the `sessions` method */
#define SESSIONS_QUEUED 32 /* ended and not yet written */

enum trigger {
	TRIGGER_PRESSURE,
	TRIGGER_REQUEST,
	TRIGGER_EXEC,
};

/* Why a session starts. */
struct trigger_reason {
	enum trigger kind;
	/* pressure */
	const struct rule_when *when;
	uint64_t stall_ms, measured_ms;
	struct psi before, now;
	/* request: who asked; exec: which process */
	uint32_t uid, pid;
	char comm[COMM_BYTES];
};

struct session {
	uint64_t id;
	struct agent *agent;
	struct ruleset *set;	 /* a reference: the rule outlives a change of the set */
	const struct rule *rule; /* NULL for a request by cgroup or pid */
	struct trigger_reason reason;
	struct rule_when when; /* copy of reason.when */
	/* What lines say of the watch, which may be gone by then. */
	struct watch *watch; /* NULL once it is gone */
	char *cgroup;
	struct owner *owner; /* whose the cgroup is, a reference while it runs; NULL: not known */
	uint64_t cgroup_id;
	uint32_t slot, epoch;
	uint32_t only_tgid;		    /* 0: no filter by process */
	bool only_rule;			    /* count processes of this rule only */
	uint32_t pre_ms;		    /* as available */
	uint32_t during_ms;		    /* as asked */
	uint64_t start_ns, end_ns, stop_ns; /* begun; to end at; really ended */
	bool ending;	     /* `last` is taken; waiting for the ring to be drained */
	uint64_t settled_ns; /* a drain after this moment has all that will come */
	struct slot_counters *first, *last; /* per CPU, owned; one array */
	uint64_t *before_first; /* per CPU: number of the first sample of the pre-roll, or ~0 */
	uint64_t filtered[PHASE_COUNT_]; /* samples of other processes of the slot */
	struct ledger phase[PHASE_COUNT_];
	uint64_t usage_start_us;	   /* the cgroup's CPU time; ~0 when not known */
	uint64_t expected;		   /* ticks during; ~0 when not known */
	size_t cpus_ticking, cpus_missing; /* those with a sampling event, and without; at start */
	const char *unsampled_why; /* of the missing ones; a literal, NULL when there is none */
	struct switches switches;
	struct stacks stacks;
	struct psi pressure_end;
	bool has_pressure_end;
	struct session *next; /* in the reporter's queue */
};

/* What the `sessions` method remembers of an ended one. */
struct session_summary {
	uint64_t id;
	char rule[RULE_NAME_BYTES];
	char cgroup[256];
	enum trigger trigger;
	uint64_t end_ns;
	uint64_t samples;
};

struct sessions {
	struct session *running[SESSIONS_MAX];
	size_t count;
	uint64_t total, held;
	struct session_summary ended[SESSIONS_ENDED];
	size_t n_ended; /* in all; the ring holds the last */
};

/* Why a trigger was held back, and when it may work again. */
struct held {
	const char *reason; /* "cooldown", ...; a literal */
	uint64_t retry_ms;
};

/*
 * Starts a session on `w` for `rule` (NULL: request without a rule), or says why not: -EAGAIN with
 * ret_held filled in. during_ms 0: the rule's. only_tgid 0: no filter. -errno.
 */
int session_start(struct watch *w, const struct rule *rule, const struct trigger_reason *reason,
		  uint32_t during_ms, uint32_t only_tgid, struct session **ret_session,
		  struct held *ret_held);

/* Bits of the signals that it is to have and that do not run; at its start. */
uint32_t session_signals_missing(const struct session *s);

/*
 * Attaches the signals beside sampling, which may take the time in which a broker starts, and
 * writes session.start; after the line that says why (pressure).
 */
void session_announce(struct session *s);

/* Writes trigger.held, at most one line per rule, watch and cooldown; repeats are counted. */
void session_say_held(struct watch *w, const struct rule *rule, const struct trigger_reason *reason,
		      const struct held *held);

/* Takes a decoded sample of its slot. False when it does not belong to the session. */
bool session_sample(struct session *s, const struct hit *h, const struct process *p);

/* Ends it now, whatever is left of its time; the account is closed at the next drain. */
void session_end(struct session *s);

/* Ends what is due and hands what is complete to the reporter; after every drain. */
void sessions_step(struct agent *a, uint64_t now_ns);

/* Nanoseconds to the next end, or 0 when nothing runs. */
uint64_t sessions_next_ns(const struct agent *a, uint64_t now_ns);

void session_free(struct session *s);

/* "pressure", "request", "exec". */
const char *trigger_name(enum trigger kind);

/* Writes the elements of the `sessions` method. */
void sessions_write(const struct agent *a, struct jsonw *w);

#endif
