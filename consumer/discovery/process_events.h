/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process_events.h: turns the kernel side's events (exec, fork, rename, exit, cgroups) into matched
 * processes and watches. Main thread only.
 */
#ifndef TROCAR_CONSUMER_DISCOVERY_PROCESS_EVENTS_H
#define TROCAR_CONSUMER_DISCOVERY_PROCESS_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct discovery;

/* Drains the events ring until the time slice is over (turn.h); pins->events.cut: more is left. */
void process_events_drain(struct discovery *d);

/*
 * Checks one record of the events ring: its lengths, its kind, the NUL of its texts. Pure; fuzzed.
 */
bool process_events_valid(const void *record, size_t bytes);

#endif
