/* SPDX-License-Identifier: BSD-2-Clause */
/* watch_events.h: writes the lines and the answer about watches. Main thread only. */
#ifndef TROCAR_CONSUMER_TELEMETRY_WATCH_EVENTS_H
#define TROCAR_CONSUMER_TELEMETRY_WATCH_EVENTS_H

#include "consumer/conditions/pressure_follow.h"
#include "consumer/output/event_budget.h"
#include "consumer/watch/watch.h"

/* Its collaborators, borrowed. */
struct watch_events {
	struct event_budget *budget;
	const struct pressure_follow *pressure;
};

/* Writes watch.start; called once, when the first rule is bound. */
void watch_events_start(const struct watch_events *e, const struct watch *w);

/* Writes watch.stop. */
void watch_events_stop(const struct watch_events *e, const struct watch *w, const char *reason);

/* Writes the watch's element of the method `watches`. */
void watch_events_write(const struct watch_events *e, const struct watch *w, struct jsonw *json);

#endif
