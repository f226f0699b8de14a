/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/sampling.h"

#include "consumer/agent.h"
#include "consumer/sample_decode.h"
#include "shared/macro.h"

/* Room for the deepest sample; the main thread is the only user. */
static union {
	struct stack_sample hit;
	uint8_t room[sizeof(struct stack_sample) + STACK_SAMPLE_FRAMES_MAX * sizeof(struct frame)];
} scratch;

static void take(void *context, const void *record, size_t bytes)
{
	struct agent *a = context;
	const struct pins *pins = &a->pins;
	struct process *p;
	struct session *s;

	a->counts.samples++;
	if (!sample_record_valid(record, bytes, pins->abi.slots, pins->abi.cpus_possible)) {
		a->counts.bad_records++;
		return;
	}
	p = sample_decode(a, record, &scratch.hit);
	if (!p)
		a->counts.processes_full++;
	s = sessions_of_slot(&a->sessions, scratch.hit.slot, scratch.hit.epoch);
	if (s && session_sample(s, &scratch.hit, p))
		return;
	if (watches_at(&a->watches, scratch.hit.slot, scratch.hit.epoch) &&
	    recorder_add(&a->recorder, &scratch.hit) < 0)
		a->recorder.evicted++;
}

void sampling_drain(struct agent *a)
{
	ring_drain(&a->pins.samples, take, a);
	process_unwind_step(&a->unwind);
}
