/* SPDX-License-Identifier: BSD-2-Clause */
/* watch_events.h: what is said of watches. Main thread only. */
#ifndef TROCAR_CONSUMER_TELEMETRY_WATCH_EVENTS_H
#define TROCAR_CONSUMER_TELEMETRY_WATCH_EVENTS_H

#include "consumer/output/event_budget.h"
#include "consumer/pressure/pressure_follow.h"
#include "consumer/watch/watch.h"

/* What it is said with; borrowed. */
struct watch_events {
	struct event_budget *budget;
	const struct pressure *pressure;
};

/* Writes watch.start; once, when the first rule is bound. */
void watch_events_start(const struct watch_events *e, const struct watch *w);

/* Writes watch.stop. */
void watch_events_stop(const struct watch_events *e, const struct watch *w, const char *reason);

/* Writes the element of the `watches` method. */
void watch_events_write(const struct watch_events *e, const struct watch *w, struct jsonw *json);

#endif
