/* SPDX-License-Identifier: BSD-2-Clause */
/* trigger_reason.h: why a session starts, and its form in lines. */
#ifndef TROCAR_CONSUMER_SIGNALS_TRIGGER_REASON_H
#define TROCAR_CONSUMER_SIGNALS_TRIGGER_REASON_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/kernel/psi.h"
#include "shared/abi/abi.h"
#include "shared/rules/rules.h"
#include "shared/tools/reason_text.h"

struct jsonw;

enum trigger_kind {
	TRIGGER_PRESSURE,
	TRIGGER_REQUEST,
	TRIGGER_EXEC,
	TRIGGER_QUIET,
	TRIGGER_STUCK,
	TRIGGER_OOM_KILL,
};

/* Triggers with one cause share a cooldown and a sum of held triggers. Each resource is a cause. */
enum trigger_cause {
	CAUSE_CPU = RESOURCE_CPU,
	CAUSE_MEMORY = RESOURCE_MEMORY,
	CAUSE_IO = RESOURCE_IO,
	CAUSE_REQUEST = RESOURCE_COUNT_,
	CAUSE_EXEC,
	CAUSE_QUIET,
	CAUSE_STUCK,
	CAUSE_OOM_KILL,
	CAUSE_COUNT_,
};

struct trigger_reason {
	enum trigger_kind kind;
	/* pressure */
	struct rule_when when; /* the threshold */
	const char *by;	       /* how the crossing was noticed, as written in the line */
	const int *
		pressure_fd; /* points to the pressure file's descriptor, which is -1 without one */
	uint64_t stall_ms, measured_ms;
	struct psi before, now;
	/* quiet: CPU time in measured_ms, with the threshold in `when` */
	uint64_t cpu_us, usual_us;
	uint64_t began_ms; /* quiet: how long ago it began; at least measured_ms */
	/*
	 * stuck: this many of the cgroup's threads are in one wait, each for at least measured_ms
	 */
	uint64_t stuck_threads, all_threads;
	const char *wait; /* kind of wait: "lock", ... */
	/* request: the client; exec and oom_kill: the process */
	uint32_t uid, pid;
	char comm[COMM_BYTES];
	char text[REASON_TEXT_BYTES]; /* request: its text; "" without one */
	/*
	 * request: the requested signals (1u << enum signal_bit), or RULES_SIGNALS_AUTO; 0: the
	 * rule's signals.
	 */
	uint32_t signals;
};

/* Returns "pressure", "request", "exec", "quiet", "stuck" or "oom_kill". */
const char *trigger_reason_name(enum trigger_kind kind);

enum trigger_cause trigger_reason_cause(const struct trigger_reason *reason);

/*
 * Returns the word of a cause: "pressure" for each resource, else "request", "exec", "quiet",
 * "stuck" or "oom_kill".
 */
const char *trigger_reason_cause_name(enum trigger_cause cause);

/* Returns "cpu", "memory" or "io"; NULL for a cause that is not pressure. */
const char *trigger_reason_cause_resource(enum trigger_cause cause);

/*
 * Returns whether the reason is a stall, measured by the kernel or by thread snapshots, which has
 * an onset: pressure, quiet or stuck.
 */
bool trigger_reason_is_stall(const struct trigger_reason *reason);

/*
 * Returns whether its session is to explain a stall: true for a measured stall, and for a request,
 * which asks for an explanation; false for a process that begins.
 */
bool trigger_reason_asks_why(const struct trigger_reason *reason);

/*
 * Returns whether the rule's cooldown applies: it holds back such a trigger, and a session with
 * this reason starts it. True for all but a request without a text, which a person makes.
 */
bool trigger_reason_cools(const struct trigger_reason *reason);

/* Writes "reason": {...} of session.start. */
void trigger_reason_write(const struct trigger_reason *reason, struct jsonw *w);

/* Writes the threshold's keys of trigger.held for a stall; writes nothing for other kinds. */
void trigger_reason_write_threshold(const struct trigger_reason *reason, struct jsonw *w);

#endif
