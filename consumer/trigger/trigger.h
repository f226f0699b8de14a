/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trigger.h: decides whether a trigger (pressure, a request, an exec) begins a session. It holds
 * the trigger back because of a cooldown, a budget, an owner's part, or a full report thread; no
 * other file begins sessions. It also writes the lines about the decision, in their order. Main
 * thread only.
 */
#ifndef TROCAR_CONSUMER_TRIGGER_TRIGGER_H
#define TROCAR_CONSUMER_TRIGGER_TRIGGER_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/io/schedule.h"
#include "consumer/output/event_log.h"
#include "consumer/process/process_targets.h"
#include "consumer/report/report_thread.h"
#include "consumer/rules/shares.h"
#include "consumer/session/session.h"
#include "consumer/trigger/cooldown.h"
#include "consumer/watch/watch.h"

#define TRIGGER_QUEUED_MAX 32 /* ended sessions that are not yet written */

/* All borrowed, except the last two. */
struct triggers {
	const struct event_log *log;
	struct schedule *schedule;
	struct sessions *sessions;
	struct watches *watches;
	struct shares *shares;
	struct report_thread *reporter;
	const struct process_targets *targets;
	struct cooldowns cooldowns;
	uint64_t held; /* triggers that were held back */
};

/* The trigger, and the evidence to capture. */
struct trigger {
	struct watch *watch;
	const struct rule *rule; /* of the active set; NULL: a request without a rule */
	struct trigger_reason reason;
	uint32_t during_ms; /* 0: the rule's */
	uint32_t only_tgid; /* 0: no filter by process */
	/* Writes the lines before session.start if a session begins; may be NULL. */
	void (*begun)(void *context, struct session *s);
	void *context; /* its first argument */
};

/*
 * Begins a session: writes the line "pressure" if pressure is the reason, attaches the signals
 * (which may take as long as a broker takes to start), then writes session.start. Returns 0 with
 * the session, borrowed until triggers_step. Returns -EAGAIN if the trigger is held back: *ret_held
 * is set, and the trigger is counted (cooldown_hold writes the lines; a running session of the
 * watch lists it in its session.end). Returns -ENOMEM.
 */
int trigger_fire(struct triggers *t, const struct trigger *trigger, struct session **ret_session,
		 struct trigger_held *ret_held);

/*
 * Holds a trigger back for the caller's reason, in the same way as trigger_fire: counts it and
 * writes the lines.
 */
void trigger_hold(struct triggers *t, const struct trigger *trigger,
		  const struct trigger_held *held);

/*
 * Withdraws the request for process `tgid` (struct process.requested), unless a session of it runs:
 * the kernel side no longer samples it for that reason.
 */
void triggers_release_process(const struct triggers *t, uint32_t tgid);

/*
 * Passes ended and settled sessions to the report thread, begins their cooldowns, and sets their
 * watches back to the recorder. Call after every drain. Schedules a drain soon if a session has not
 * settled.
 */
void triggers_step(struct triggers *t, uint64_t now_ns);

#endif
