/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel_errors.h: turns records of the errors ring, and losses without a record, into error lines.
 */
#ifndef TROCAR_CONSUMER_TELEMETRY_KERNEL_ERRORS_H
#define TROCAR_CONSUMER_TELEMETRY_KERNEL_ERRORS_H

struct counts;
struct event_log;
struct pinned_maps;
struct schedule;
struct watches;

/* All borrowed. */
struct kernel_errors {
	struct pinned_maps *pins;
	const struct event_log *log;
	const struct watches *watches;
	struct schedule *schedule;
	struct counts *counts;
};

/* Drains the errors ring; schedules a scan at once if discovery events were lost. */
void kernel_errors_drain(struct kernel_errors *k);

#endif
