/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/conditions/threshold.h"

#include <stdlib.h>

#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/*
 * Limit of a scanned history: ten points per window and some for a slow tick; windows reach 10 s,
 * at scans of 100 ms. It grows as needed: most scanned totals never grow, or only until their
 * trigger is open.
 */
#define SCAN_POINTS 112

/* Points one second apart: a window of 10 s, and more than one interval between drains. */
#define TRIGGER_POINTS 16

bool threshold_is(const struct threshold *t, const struct rule_when *when)
{
	return !when->quiet && !when->stuck && t->resource == when->resource &&
	       t->full == when->full && t->stall_ms == when->stall_ms &&
	       t->window_ms == when->window_ms;
}

struct threshold *threshold_find(const struct followed *f, const struct rule_when *when)
{
	struct threshold *t = f->thresholds;

	while (t && !threshold_is(t, when))
		t = t->next;
	return t;
}

struct threshold *threshold_add(struct followed *f, const struct rule_when *when, const char *why)
{
	struct threshold *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	*t = (struct threshold){
		.next = f->thresholds,
		.of = f,
		.resource = when->resource,
		.full = when->full,
		.stall_ms = when->stall_ms,
		.window_ms = when->window_ms,
		.way = THRESHOLD_WAITING,
		.reason = why,
		.fd = -1,
	};
	f->thresholds = t;
	return t;
}

struct threshold *threshold_take_unwanted(struct followed *f)
{
	struct threshold **at = &f->thresholds, *t;

	while (*at && (*at)->wanted)
		at = &(*at)->next;
	t = *at;
	if (t)
		*at = t->next;
	return t;
}

bool threshold_waits(const struct followed *f)
{
	for (const struct threshold *t = f->thresholds; t; t = t->next)
		if (t->way == THRESHOLD_WAITING)
			return true;
	return false;
}

/* Allocates the history. False if there is no memory for any history. */
static bool make_room(struct followed_file *f, uint64_t now_ns)
{
	struct psi psi;

	if (f->fd < 0 || !(f->by_scan || f->by_trigger))
		return true;
	/* Without memory to shrink the history, the larger one stays. */
	if ((!f->by_scan || !f->history.space) &&
	    psi_history_resize(&f->history, TRIGGER_POINTS) < 0 && !f->history.space)
		return false;
	if (!f->history.count && psi_read(f->fd, &psi) == 0)
		psi_history_add(&f->history, now_ns, &psi);
	return true;
}

uint32_t threshold_tally(struct followed *f)
{
	uint64_t now_ns = clock_mono_ns();
	uint32_t failed = 0;

	for (int i = 0; i < RESOURCE_COUNT_; i++)
		f->file[i].by_trigger = f->file[i].by_scan = 0;
	for (const struct threshold *t = f->thresholds; t; t = t->next)
		if (t->way == THRESHOLD_TRIGGER)
			f->file[t->resource].by_trigger++;
		else
			f->file[t->resource].by_scan++;
	for (int i = 0; i < RESOURCE_COUNT_; i++)
		if (!make_room(&f->file[i], now_ns))
			failed |= 1u << i;
	return failed;
}

void threshold_add_reading(struct followed_file *f, uint64_t now_ns, const struct psi *psi)
{
	struct psi_history *h = &f->history;

	/* If there is no memory for more points, stalls are measured over a shorter time. */
	if (h->count == h->space && h->space < SCAN_POINTS)
		(void)psi_history_resize(h, MIN(2 * h->space, (size_t)SCAN_POINTS));
	psi_history_add(h, now_ns, psi);
}
