/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/conditions/pressure_signs.h"

#include "consumer/conditions/pressure_follow.h"
#include "consumer/conditions/quiet_follow.h"
#include "consumer/conditions/stuck_follow.h"
#include "consumer/sampling/wait_recorder.h"

/* By slot: a session that starts must not disturb the iteration. */
static void read_quiet(struct pressure_follow *p)
{
	for (uint32_t i = 0; i < p->slots.count; i++)
		if (p->slots.at[i].quiet)
			quiet_follow_read(p->slots.at[i].quiet, p->slots.at[i].watch,
					  p->crossings.triggers);
}

/* Called after each complete pass of the recorder, by slot. */
static void check_stuck(struct pressure_follow *p)
{
	const struct recorded_pass *last = p->waits ? wait_recorder_last(p->waits) : NULL;

	if (!last || last->number == p->stuck_pass || last->cut)
		return;
	p->stuck_pass = last->number;
	for (uint32_t i = 0; i < p->slots.count; i++)
		if (p->slots.at[i].stuck)
			stuck_follow_check(p->slots.at[i].stuck, p->waits, p->slots.at[i].watch,
					   p->crossings.triggers);
}

void pressure_signs_check(struct pressure_follow *p)
{
	read_quiet(p);
	check_stuck(p);
}
