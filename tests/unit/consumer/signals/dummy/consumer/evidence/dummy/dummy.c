/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A signal that no version has: it counts the samples of its slot, takes their stacks, loses every
 * fourth, and writes a line. The files of this folder are all that it adds.
 */
#include <stdlib.h>

#include "consumer/output/event_line.h"
#include "consumer/session/session_result.h"
#include "consumer/signals/signals.h"
#include "shared/json/jsonw.h"

struct dummy {
	struct signal signal;
	struct signal_stacks taken;
	uint64_t seen;
	bool begun, ended;
};

static bool is_auto(const struct trigger_reason *reason)
{
	return false;
}

static struct signal *create_dummy(const struct signal_host *host,
				   const struct signal_target *target)
{
	struct dummy *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->signal.off_reason = "it has not been attached yet";
	d->signal.taken = &d->taken;
	d->taken.expected = UINT64_MAX;
	d->taken.expected_why = "no figure of the kernel calls for any";
	stack_table_init(&d->taken.stacks, host->stacks);
	return &d->signal;
}

static void destroy_dummy(struct signal *s)
{
	struct dummy *d = (struct dummy *)s;

	stack_table_done(&d->taken.stacks);
	free(d);
}

static void begin_dummy(struct signal *s, const struct signal_host *host,
			const struct signal_target *target)
{
	((struct dummy *)s)->begun = true;
}

static void attach_dummy(struct signal *s, const struct signal_host *host,
			 const struct signal_target *target)
{
	s->off_reason = ((struct dummy *)s)->begun ? NULL : "attached before it began";
}

static bool take_sample(struct signal *s, const struct signal_target *target,
			const struct stack_sample *h, const struct process *p)
{
	struct dummy *d = (struct dummy *)s;
	struct ledger *ledger = &d->taken.phase[PHASE_DURING];

	ledger->attempted++;
	if (++d->seen % 4 == 0)
		ledger->lost[DROP_HELD]++;
	else if (stack_table_add(&d->taken.stacks, h, PHASE_DURING, 1000, NULL) < 0)
		ledger->lost[DROP_MAP_FULL]++;
	else
		ledger->emitted++;
	return true;
}

static void end_dummy(struct signal *s, const struct signal_host *host,
		      const struct signal_target *target)
{
	((struct dummy *)s)->ended = true;
}

static bool is_settled(const struct signal *s)
{
	return ((const struct dummy *)s)->ended;
}

static void put_lines(const struct session_result *s, const struct event_lines *lines,
		      const struct event_subject *subject)
{
	const struct dummy *d = (const struct dummy *)s->signals[SIGNAL_RUNTIME];
	struct jsonw w;

	event_line_begin(lines, &w, "dummy", subject);
	jsonw_string(&w, "signal", rules_signal_name(SIGNAL_RUNTIME));
	jsonw_u64(&w, "seen", d->seen);
	event_line_end(lines, &w);
}

const struct signal_kind dummy_kind = {
	.id = SIGNAL_RUNTIME,
	.stacks_of = STACKS_RUNNING,
	.is_auto = is_auto,
	.create = create_dummy,
	.destroy = destroy_dummy,
	.begin = begin_dummy,
	.attach = attach_dummy,
	.sample = take_sample,
	.end = end_dummy,
	.is_settled = is_settled,
	.lines = put_lines,
};
