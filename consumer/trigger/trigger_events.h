/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trigger_events.h: writes the lines about triggers: trigger.held and pressure. Main thread only.
 */
#ifndef TROCAR_CONSUMER_TRIGGER_TRIGGER_EVENTS_H
#define TROCAR_CONSUMER_TRIGGER_TRIGGER_EVENTS_H

#include <stdint.h>

#include "consumer/output/event_log.h"
#include "consumer/trigger/trigger.h"

/*
 * Writes trigger.held about the last held trigger of `e`. With `sums` the line covers all triggers
 * in e->held, else only that one.
 */
void trigger_events_held(const struct event_log *log, const struct cooldown *e, bool sums);

/*
 * Writes the line "pressure" of a trigger that began session `session`. `broken`: the session with
 * the cooldown that it broke, or 0.
 */
void trigger_events_pressure(const struct event_log *log, const struct trigger *trigger,
			     uint64_t session, uint64_t broken);

#endif
