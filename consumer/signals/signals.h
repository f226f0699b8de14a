/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * signals.h: the interface of a signal, one kind of evidence. A session has one struct signal for
 * each kind that it wants, and knows none of them by name; the agent gives the list
 * (consumer/evidence). The main thread runs a signal from begin to close; then the session's result
 * owns the signal's data, and the report thread writes it. docs/architecture.md, "Where to add a
 * signal".
 */
#ifndef TROCAR_CONSUMER_SIGNALS_SIGNALS_H
#define TROCAR_CONSUMER_SIGNALS_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/sampling/stack_table.h"
#include "consumer/sampling/wait_objects.h"
#include "consumer/signals/ledger.h"
#include "consumer/signals/trigger_reason.h"
#include "shared/rules/rules.h"

struct account_holds;
struct cgroups;
struct event_lines;
struct event_subject;
struct counter_history;
struct jsonw;
struct long_wait_sweep;
struct look_pass;
struct look_seen;
struct looks;
struct pinned_maps;
struct process;
struct recorder;
struct sampler;
struct session_result;
struct signal_kind;
struct signal_programs;
struct socket_passes;
struct timeline;
struct wait_recorder;

/* What signals attach to and read from; filled once, all borrowed. Main thread only. */
struct signal_host {
	const struct signal_kind *const *kinds; /* by id; NULL: no program for it */
	const struct pinned_maps *pins;
	const struct sampler *sampler;
	struct signal_programs *programs;
	struct account_holds *accounts;	    /* of all sessions */
	struct long_wait_sweep *long_waits; /* likewise */
	const struct recorder *recorder;
	struct cgroups *cgroups;
	struct processes *processes;
	struct stack_budget *stacks; /* of all sessions; NULL: none */
	struct looks *looks;
	struct wait_recorder *waits; /* NULL: earlier waits were not kept */
	struct socket_passes *sockets;
};

/* What a session captures; the session owns it. */
struct signal_target {
	const struct rule *rule;	     /* NULL for a request by cgroup or pid */
	const struct trigger_reason *reason; /* borrowed from the session's result */
	const char *cgroup;		     /* path, borrowed from the session's result */
	uint64_t cgroup_id;
	uint32_t slot, epoch;
	uint32_t wanted;    /* bits of all signals of the session */
	uint32_t only_tgid; /* 0: no filter by process */
	bool only_rule;	    /* processes of this rule only */
	uint32_t rule_id;   /* of the rule (ruleset.h) */
	bool by_process;    /* the slot takes matched processes only, or did for a time */
	bool shared;	    /* the slot takes more than the session does, or did for a time */
	uint32_t pre_ms;    /* as much as the recorder has */
	uint32_t onset_ms;  /* of these the last: PHASE_ONSET */
	uint64_t start_ns;  /* CLOCK_MONOTONIC */
	uint64_t stop_ns;   /* 0 while it runs */
	/* What the slot's counters were; borrowed, NULL after begin. */
	const struct counter_history *counters;
	struct timeline *timeline;  /* of the session's result; NULL: no memory for one */
	struct cgroup_names *names; /* of the session; NULL: none are kept */
};

/* Stacks and their ledger, for signals that take stacks. */
struct signal_stacks {
	struct stack_table stacks;
	struct ledger phase[PHASE_COUNT_];
	/* samples in `during` that the kernel's own figures call for; ~0: not known */
	uint64_t expected;
	const char *expected_why;    /* why it is not known: a literal */
	uint64_t left_out;	     /* samples that a budget left out */
	uint64_t nameless;	     /* stacks that were written without names, to save bytes */
	struct wait_objects objects; /* what the threads of the stacks wait on */
};

struct signal {
	const struct signal_kind *kind; /* NULL: this version has no program for it */
	enum signal_bit id;
	const char *why;    /* why it does not run: a literal; NULL: it runs */
	const char *partly; /* why it runs on some CPUs only: a literal; NULL: on all */
	bool unattached;    /* it runs, and yet `attach` is to be called again */
	uint32_t settle_ms; /* how long after its end the session waits for it at least */
	/* The rest is owned by the kind; NULL: there is none, or not yet. */
	struct signal_stacks *taken;
	const struct ledger *counted; /* what it counts, where that is no stacks */
	/* What else it has gathered, for the report: a struct that the kind's own files know. */
	void *evidence;
};

/* What the threads of a signal's stacks do. */
enum signal_stacks_of {
	STACKS_NONE,	/* it takes none */
	STACKS_RUNNING, /* they run: a stack stands for CPU time */
	STACKS_WAITING, /* they wait, and a stack stands for the time */
	STACKS_WAKING,	/* they end the waits of others: a stack stands for no time */
};

/*
 * One kind of signal. A kind's own struct begins with its struct signal. Every call after `create`
 * and `destroy` may be NULL.
 */
struct signal_kind {
	enum signal_bit id;
	enum signal_stacks_of stacks_of;
	bool leads; /* at the end of a session, and among its lines, it comes before the others */
	const char *auto_why; /* sentence of session.start where "auto" chose this kind; NULL */
	/* Words of the verdict: what `counted` counts, and what had no room for it. */
	const char *counts, *table;

	/* Returns whether "auto" chooses it for a trigger. */
	bool (*is_auto)(const struct trigger_reason *reason);

	/*
	 * Called before a slot is set to capture for any session: nothing that the kernel side has
	 * of the slot's last one may go on there.
	 */
	void (*settle)(const struct signal_host *host);

	/* Allocates it for one session, without evidence yet. NULL without memory. */
	struct signal *(*create)(const struct signal_host *host,
				 const struct signal_target *target);

	/* Frees it with its evidence; any thread. */
	void (*destroy)(struct signal *s);

	/*
	 * Notes the counters. Called when the slot is set to capture and the CPUs tick at the full
	 * rate.
	 */
	void (*begin)(struct signal *s, const struct signal_host *host,
		      const struct signal_target *target);

	/*
	 * Attaches programs, which may take as long as a broker takes to start: so it is called
	 * after the lines with the reason of the session. Called again, while the signal does not
	 * run or is `unattached`, when a broker that was late is there.
	 */
	void (*attach)(struct signal *s, const struct signal_host *host,
		       const struct signal_target *target);

	/* Takes a sample of its slot. False when the sample does not belong to the session. */
	bool (*sample)(struct signal *s, const struct signal_target *target,
		       const struct stack_sample *h, const struct process *p);

	/* Takes a thread of its slot that a look found waiting (consumer/sampling/looks.h). */
	void (*look)(struct signal *s, const struct signal_target *target,
		     const struct look_pass *pass, const struct look_seen *seen);

	/* A pass over all threads has ended. */
	void (*passed)(struct signal *s, const struct signal_target *target,
		       const struct look_pass *pass);

	/*
	 * Reads in slices, as much as a turn of the main loop has time for. Called when the session
	 * is to end, until it returns true. A session that must end at once ends without.
	 */
	bool (*prepare)(struct signal *s, const struct signal_host *host,
			const struct signal_target *target);

	/* Notes the counters and detaches. Called when the slot is set to recorder again. */
	void (*end)(struct signal *s, const struct signal_host *host,
		    const struct signal_target *target);

	/* Returns whether every sample attempted until the end has arrived. Lost ones never do. */
	bool (*is_settled)(const struct signal *s);

	/*
	 * Closes the ledger. Called when no more samples will come. Drops every pointer into the
	 * main thread's data.
	 */
	void (*close)(struct signal *s, const struct signal_host *host,
		      const struct signal_target *target);

	/* Writes its keys of session.start. */
	void (*write_start)(const struct signal *s, struct jsonw *w);

	/* The rest is called on the report thread. */

	/* Writes its lines, of a session that wanted it; nothing without evidence. */
	void (*lines)(const struct session_result *s, const struct event_lines *lines,
		      const struct event_subject *subject);

	/* Writes its keys of session.end beside ledger and stacks. */
	void (*write)(const struct signal *s, struct jsonw *w);

	/*
	 * Writes the members of its object in `ledger`, where it has evidence; its stacks then
	 * count in no sum. NULL: it is written as the others are.
	 */
	void (*write_ledger)(const struct signal *s, struct jsonw *w);

	/*
	 * Returns whether evidence is missing, beside what `counted` has lost, and writes a
	 * sentence on it.
	 */
	bool (*lacks)(const struct signal *s, char ret_reason[LEDGER_REASON_BYTES]);
};

/*
 * Returns the bits of the signals that the request names, or else `rule` (may be NULL); 0: none,
 * "auto" chooses.
 */
uint32_t signals_asked(const struct rule *rule, const struct trigger_reason *reason);

/* Returns the bits of the signals that a session for `rule` (may be NULL) and `reason` wants. */
uint32_t signals_wanted(const struct signal_kind *const *kinds, const struct rule *rule,
			const struct trigger_reason *reason);

/* Returns the evidence of one of a session's signals; NULL: it has none, or there is no such one.
 */
static inline void *signals_evidence(struct signal *const signals[SIGNAL_COUNT_],
				     enum signal_bit id)
{
	return signals[id] ? signals[id]->evidence : NULL;
}

/* Returns that of a session's signals whose stacks are of such threads; NULL: there is none. */
struct signal *signals_of_stacks(struct signal *const signals[SIGNAL_COUNT_],
				 enum signal_stacks_of stacks_of);

/*
 * Creates the signal of a bit. Where this version has no program for it, the signal only reports
 * this.
 */
struct signal *signals_new(enum signal_bit id, const struct signal_host *host,
			   const struct signal_target *target);
void signals_free(struct signal *s);

/*
 * Returns session.start's sentence on the choice of `wanted`: that of the last chosen kind which
 * has one, or NULL.
 */
const char *signals_auto_why(const struct signal_kind *const *kinds, uint32_t wanted);

#endif
