/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * signals.h: the interface of a signal, one kind of evidence. A session has one struct signal for
 * each kind that it wants, and no code for any single kind; the agent supplies the list of kinds
 * (consumer/evidence). The main thread runs a signal from begin to close. Then the session's result
 * owns the signal's data, and the report thread writes it. See docs/architecture.md, "Where to add
 * a signal".
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

/*
 * The resources that signals attach to and read from; filled once, all borrowed. Main thread only.
 */
struct signal_host {
	const struct signal_kind *const *kinds; /* by id; NULL: not in this version */
	const struct pinned_maps *pins;
	const struct sampler *sampler;
	struct signal_programs *programs;
	struct account_holds *accounts;	    /* of all sessions */
	struct long_wait_sweep *long_waits; /* of all sessions */
	const struct recorder *recorder;
	struct cgroups *cgroups;
	struct processes *processes;
	struct stack_budget *stacks; /* of all sessions; NULL: no budget */
	struct looks *looks;
	struct wait_recorder *waits; /* NULL: earlier waits were not recorded */
	struct socket_passes *sockets;
	struct other_ends *other_ends; /* NULL: they are not sought */
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
	bool by_process;    /* the slot takes matched processes only, or did at some time */
	bool shared;	    /* the slot takes more than this session wants, or did at some time */
	uint32_t pre_ms;    /* length of the pre-roll, limited by the recorder's data */
	uint32_t onset_ms;  /* the last part of pre_ms: PHASE_ONSET */
	uint64_t start_ns;  /* CLOCK_MONOTONIC */
	uint64_t stop_ns;   /* 0 while it runs */
	/* Earlier values of the slot's counters; borrowed, NULL after begin. */
	const struct counter_history *counters;
	struct timeline *timeline;  /* of the session's result; NULL: no memory */
	struct cgroup_names *names; /* of the session; NULL: no names are kept */
};

/* Stacks and their ledger, for signals that take stacks. */
struct signal_stacks {
	struct stack_table stacks;
	struct ledger phase[PHASE_COUNT_];
	/* expected samples in `during`, by the kernel's own figures; ~0: unknown */
	uint64_t expected;
	const char *expected_why;    /* why `expected` is unknown: a literal */
	uint64_t left_out;	     /* samples that a budget dropped */
	uint64_t nameless;	     /* stacks written without names, to save bytes */
	struct wait_objects objects; /* objects that the threads of the stacks wait on */
};

struct signal {
	const struct signal_kind *kind; /* NULL: not in this version */
	enum signal_bit id;
	const char *off_reason; /* why the signal does not run: a literal; NULL: it runs */
	const char *
		partial_reason; /* why the signal runs on some CPUs only: a literal; NULL: on all */
	bool unattached;	/* the signal runs, but `attach` has to be called again */
	bool tried;		/* `attach` was called */
	bool held;		/* the kind's programs are attached for this session */
	uint64_t late_ms;	/* the programs were attached this late after the begin */
	uint32_t settle_ms; /* the session waits at least this long after its end for the signal */
	/* The kind owns the rest; NULL: none, or not yet. */
	struct signal_stacks *taken;
	const struct ledger *counted; /* the counted events, for a signal without stacks */
	/* Other evidence for the report: a struct that only the kind's own files know. */
	void *evidence;
};

/* State of the threads in a signal's stacks. */
enum signal_stacks_of {
	STACKS_NONE,	/* the signal takes no stacks */
	STACKS_RUNNING, /* running: a stack represents CPU time */
	STACKS_WAITING, /* waiting: a stack represents waiting time */
	STACKS_WAKING,	/* waking other threads: a stack represents no time */
};

/*
 * One kind of signal. A kind's own struct begins with its struct signal. Every callback after
 * `create` and `destroy` may be NULL.
 */
struct signal_kind {
	enum signal_bit id;
	enum signal_stacks_of stacks_of;
	bool leads;	      /* handled before other kinds at a session's end and in its lines */
	const char *auto_why; /* sentence of session.start if "auto" chose this kind; may be NULL */
	/*
	 * Words for the verdict: the things that `counted` counts, and the things lost to a full
	 * table.
	 */
	const char *counts, *table;

	/* Returns whether "auto" chooses this kind for a trigger. */
	bool (*is_auto)(const struct trigger_reason *reason);

	/*
	 * Called before a slot is set to capture for any session. Clears the kernel side's data of
	 * the slot's last session, so that nothing of it continues.
	 */
	void (*settle)(const struct signal_host *host);

	/* Allocates a signal for one session, without evidence yet. Returns NULL without memory. */
	struct signal *(*create)(const struct signal_host *host,
				 const struct signal_target *target);

	/* Frees the signal with its evidence; any thread. */
	void (*destroy)(struct signal *s);

	/*
	 * Records the counters. Called when the slot is set to capture and the CPUs tick at the
	 * full rate.
	 */
	void (*begin)(struct signal *s, const struct signal_host *host,
		      const struct signal_target *target);

	/*
	 * Attaches programs. This can take as long as a broker takes to start, so it is called
	 * after the lines with the session's reason. Called again when a late broker has become
	 * available, while the signal does not run or is `unattached`.
	 */
	void (*attach)(struct signal *s, const struct signal_host *host,
		       const struct signal_target *target);

	/*
	 * Takes a sample of the signal's slot. Returns false if the sample does not belong to the
	 * session.
	 */
	bool (*sample)(struct signal *s, const struct signal_target *target,
		       const struct stack_sample *h, const struct process *p);

	/*
	 * Takes a thread of the signal's slot that a sampling pass found waiting
	 * (consumer/sampling/looks.h).
	 */
	void (*look)(struct signal *s, const struct signal_target *target,
		     const struct look_pass *pass, const struct look_seen *seen);

	/* A sampling pass over all threads has ended. */
	void (*passed)(struct signal *s, const struct signal_target *target,
		       const struct look_pass *pass);

	/*
	 * Reads evidence in slices, as much as fits into an iteration of the main loop. Called when
	 * the session is about to end, until it returns true. A session that must end at once skips
	 * it.
	 */
	bool (*prepare)(struct signal *s, const struct signal_host *host,
			const struct signal_target *target);

	/* Records the counters and detaches. Called when the slot is set back to the recorder. */
	void (*end)(struct signal *s, const struct signal_host *host,
		    const struct signal_target *target);

	/*
	 * Returns whether every sample attempted before the end has arrived. Lost samples never
	 * arrive.
	 */
	bool (*is_settled)(const struct signal *s);

	/*
	 * Closes the ledger and drops every pointer into the main thread's data. Called when no
	 * more samples can arrive.
	 */
	void (*close)(struct signal *s, const struct signal_host *host,
		      const struct signal_target *target);

	/* Writes the signal's keys of session.start. */
	void (*write_start)(const struct signal *s, struct jsonw *w);

	/* The report thread calls the rest. */

	/*
	 * Writes the signal's lines for a session that wanted it; writes nothing without evidence.
	 */
	void (*lines)(const struct session_result *s, const struct event_lines *lines,
		      const struct event_subject *subject);

	/* Writes the signal's keys of session.end other than the ledger and the stacks. */
	void (*write)(const struct signal *s, struct jsonw *w);

	/*
	 * Writes the members of the signal's object in `ledger`, if it has evidence. Its stacks
	 * then count in no sum. NULL: the object is written in the common form.
	 */
	void (*write_ledger)(const struct signal *s, struct jsonw *w);

	/*
	 * Returns whether evidence is missing, other than the losses of `counted`, and writes a
	 * sentence on it.
	 */
	bool (*lacks)(const struct signal *s, char ret_reason[LEDGER_REASON_BYTES]);
};

/*
 * Returns the bits of the signals that the request names, or else those of `rule` (may be NULL); 0:
 * neither names any, so "auto" chooses.
 */
uint32_t signals_asked(const struct rule *rule, const struct trigger_reason *reason);

/* Returns the bits of the signals that a session for `rule` (may be NULL) and `reason` wants. */
uint32_t signals_wanted(const struct signal_kind *const *kinds, const struct rule *rule,
			const struct trigger_reason *reason);

/*
 * Returns the evidence of one of a session's signals; NULL if the session has no such signal or the
 * signal has no evidence.
 */
static inline void *signals_evidence(struct signal *const signals[SIGNAL_COUNT_],
				     enum signal_bit id)
{
	return signals[id] ? signals[id]->evidence : NULL;
}

/*
 * Returns the signal of a session that takes stacks of threads in state `stacks_of`; NULL if there
 * is none.
 */
struct signal *signals_of_stacks(struct signal *const signals[SIGNAL_COUNT_],
				 enum signal_stacks_of stacks_of);

/*
 * Creates the signal of a bit. If this version does not implement it, the signal only reports this.
 */
struct signal *signals_new(enum signal_bit id, const struct signal_host *host,
			   const struct signal_target *target);
void signals_free(struct signal *s);

/*
 * Returns session.start's sentence on the choice of `wanted`: the sentence of the last chosen kind
 * that has one, or NULL.
 */
const char *signals_auto_why(const struct signal_kind *const *kinds, uint32_t wanted);

#endif
