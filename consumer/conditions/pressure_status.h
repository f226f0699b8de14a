/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pressure_status.h: writes the state of following pressure into lines and answers. Main thread
 * only.
 */
#ifndef TROCAR_CONSUMER_CONDITIONS_PRESSURE_STATUS_H
#define TROCAR_CONSUMER_CONDITIONS_PRESSURE_STATUS_H

#include "consumer/conditions/pressure_follow.h"

struct jsonw;

/*
 * Writes "follow", "follow_reason" and "pressure" of a watch, and scan_ms and sleep if it needs the
 * scan. For watch.start.
 */
void pressure_status_write_start(const struct pressure_follow *p, const struct watch *w,
				 struct jsonw *json);

/* Writes "pressure" {resource: {"by", "some_total_us", ...}} for the method `watches`. */
void pressure_status_write_watch(const struct pressure_follow *p, const struct watch *w,
				 struct jsonw *json);

/* Writes "follow", and "pressure" {...}: descriptors, threads, memory and counts. For `status`. */
void pressure_status_write(const struct pressure_follow *p, struct jsonw *json);

/* Writes the counts of agent.stop, inside `totals`. */
void pressure_status_write_totals(const struct pressure_follow *p, struct jsonw *json);

#endif
