/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * signals.h: one kind of evidence. A session has one struct signal for each kind that it wants, and
 * knows none of them by name; signal_kinds.def lists the kinds. The main thread runs a signal from
 * begin to close; what it has gathered then belongs to the session's result and is written by the
 * report thread. docs/architecture.md, "Where to add a signal".
 */
#ifndef TROCAR_CONSUMER_SIGNALS_SIGNALS_H
#define TROCAR_CONSUMER_SIGNALS_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/sampling/stack_table.h"
#include "consumer/signals/ledger.h"
#include "consumer/signals/trigger_reason.h"
#include "shared/json/jsonw.h"
#include "shared/rules/rules.h"

struct cgroups;
struct pinned_maps;
struct process;
struct recorder;
struct sampler;
struct signal_programs;

/* What signals attach to and read from; got once, all borrowed. Main thread only. */
struct signal_host {
	const struct pinned_maps *pins;
	const struct sampler *sampler;
	struct signal_programs *programs;
	const struct recorder *recorder;
	struct cgroups *cgroups;
	struct processes *processes;
};

/* What a session captures; the session owns it. */
struct signal_target {
	const struct rule *rule;	     /* NULL for a request by cgroup or pid */
	const struct trigger_reason *reason; /* borrowed from the session's result */
	const char *cgroup;		     /* path, borrowed from the session's result */
	uint32_t slot, epoch;
	uint32_t only_tgid; /* 0: no filter by process */
	bool only_rule;	    /* processes of this rule only */
	bool by_process;    /* the slot takes, or took meanwhile, matched processes only */
	uint32_t pre_ms;    /* as available */
	uint64_t start_ns;  /* CLOCK_MONOTONIC */
	uint64_t stop_ns;   /* 0 while it runs */
};

/* Stacks and their account; of signals that take any. */
struct signal_stacks {
	struct stack_table stacks;
	struct ledger phase[PHASE_COUNT_];
	uint64_t expected; /* samples that the kernel's own figures call for, during; ~0: not known
			    */
};

struct signal {
	const struct signal_kind *kind; /* NULL: this version has no program for it */
	enum signal_bit id;
	const char *why;	     /* it does not run: a literal; NULL: it does */
	const char *partly;	     /* it runs, but not everywhere: a literal; NULL */
	struct signal_stacks *taken; /* owned; NULL where it takes no stacks */
};

/* A kind's own struct begins with its struct signal; every call but the first four may be NULL. */
struct signal_kind {
	enum signal_bit id;
	const char *auto_why; /* the sentence of session.start where "auto" chose it */

	/* Whether "auto" chooses it for a trigger. */
	bool (*is_auto)(const struct trigger_reason *reason);

	/* Memory for one session, zeroed evidence; NULL without memory. */
	struct signal *(*create)(const struct signal_host *host,
				 const struct signal_target *target);

	/* Releases it, evidence included; any thread. */
	void (*destroy)(struct signal *s);

	/* The slot says capture and the CPUs tick at the full rate: notes the counters. */
	void (*begin)(struct signal *s, const struct signal_host *host,
		      const struct signal_target *target);

	/*
	 * The lines that say why were written: attaches programs, which may take the time in which
	 * a broker starts. Again, while it does not run, when a broker that was late is there.
	 */
	void (*attach)(struct signal *s, const struct signal_host *host,
		       const struct signal_target *target);

	/* A sample of its slot. False when it does not belong to the session. */
	bool (*sample)(struct signal *s, const struct signal_target *target,
		       const struct stack_sample *h, const struct process *p);

	/* The slot says recorder again: notes the counters, detaches. */
	void (*end)(struct signal *s, const struct signal_host *host,
		    const struct signal_target *target);

	/* Whether all that was attempted until the end has arrived. What was lost never does. */
	bool (*is_settled)(const struct signal *s);

	/* All that will come has come: closes the account. Keeps no pointer to the main thread's.
	 */
	void (*close)(struct signal *s, const struct signal_host *host,
		      const struct signal_target *target);

	/* Its keys of session.end beside ledger and stacks. Report thread. */
	void (*write)(const struct signal *s, struct jsonw *w);
};

/* Bits of the signals that a session for `rule` (may be NULL) and `reason` wants. */
uint32_t signals_wanted(const struct rule *rule, const struct trigger_reason *reason);

/* Makes the signal of a bit. Where this version has no program it is one that says so. */
struct signal *signals_new(enum signal_bit id, const struct signal_host *host,
			   const struct signal_target *target);
void signals_free(struct signal *s);

/* The sentence of session.start on the choice of `wanted`: the last chosen kind's that has one. */
const char *signals_auto_why(uint32_t wanted);

#endif
