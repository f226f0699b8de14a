/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trigger_events.h: writes the lines about triggers: trigger.held and pressure. Main thread only.
 */
#ifndef TROCAR_CONSUMER_WATCH_TRIGGER_EVENTS_H
#define TROCAR_CONSUMER_WATCH_TRIGGER_EVENTS_H

#include <stdint.h>

#include "consumer/output/event_log.h"
#include "consumer/watch/trigger.h"

/* Writes trigger.held. `repeats`: triggers held since the last such line. */
void trigger_events_held(const struct event_log *log, const struct trigger *trigger,
			 const struct trigger_held *held, uint64_t repeats);

/* Writes the line "pressure" of a trigger that began session `session`. */
void trigger_events_pressure(const struct event_log *log, const struct trigger *trigger,
			     uint64_t session);

#endif
