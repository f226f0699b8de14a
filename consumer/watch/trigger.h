/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trigger.h: the one door to a session. Whatever triggers (pressure, a request, an exec), it is
 * held back or begins a session here, by cooldown, budgets, each owner's part, and room at the
 * report thread; the lines that say so are written here, in their order. Main thread only.
 */
#ifndef TROCAR_CONSUMER_WATCH_TRIGGER_H
#define TROCAR_CONSUMER_WATCH_TRIGGER_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/io/schedule.h"
#include "consumer/output/event_log.h"
#include "consumer/report/report_thread.h"
#include "consumer/rules/shares.h"
#include "consumer/session/session.h"
#include "consumer/watch/watch.h"

#define TRIGGER_QUEUED_MAX 32 /* sessions ended and not yet written */

/* All borrowed but `held`. */
struct triggers {
	const struct event_log *log;
	struct schedule *schedule;
	struct sessions *sessions;
	struct watches *watches;
	struct shares *shares;
	struct report_thread *reporter;
	uint64_t held; /* triggers held back */
};

/* Why a trigger was held back, and when it may work again. */
struct trigger_held {
	const char *reason; /* "cooldown", ...; a literal */
	uint64_t retry_ms;
};

/* Who triggers, and what is to be captured. */
struct trigger {
	struct watch *watch;
	const struct rule *rule; /* of the set in force; NULL: a request without a rule */
	struct trigger_reason reason;
	uint32_t during_ms; /* 0: the rule's */
	uint32_t only_tgid; /* 0: no filter by process */
};

/*
 * Begins a session and says so: the line "pressure" where that is the reason, then its signals are
 * attached (which may take the time in which a broker starts), then session.start. Or says
 * trigger.held, at most once per rule, watch and cooldown: -EAGAIN with *ret_held. -ENOMEM. 0 with
 * the session, borrowed until triggers_step.
 */
int trigger_fire(struct triggers *t, const struct trigger *trigger, struct session **ret_session,
		 struct trigger_held *ret_held);

/*
 * Hands what has ended and settled to the report thread, and lets its watch go on; after every
 * drain. A drain soon follows where one has not settled.
 */
void triggers_step(struct triggers *t, uint64_t now_ns);

#endif
