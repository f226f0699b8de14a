/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/waits/offcpu_before.h"

#include <stdlib.h>
#include <string.h>

#include "consumer/kernel/pinned_maps.h"
#include "consumer/process/process_mappings.h"
#include "consumer/signals/signal_target.h"
#include "consumer/signals/timeline.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define OPEN_MAX  65536
#define AROUND_NS (LOOKS_EVERY_NS / 2) /* as between two passes of a session */

static uint64_t phase_from(const struct offcpu_before *b, enum phase phase)
{
	return phase == PHASE_BEFORE ? b->from_ns : b->onset_ns;
}

static uint64_t phase_to(const struct offcpu_before *b, enum phase phase)
{
	return phase == PHASE_BEFORE ? b->onset_ns : b->to_ns;
}

/* Returns the executable of the sample's process, or NULL if the process is not known any more. */
static struct module *find_exe(const struct offcpu_before *b, const struct stack_sample *h,
			       uint64_t ns)
{
	struct process *p = b->processes ? process_find(b->processes, h->tgid, h->start_ns) : NULL;

	return p ? process_mappings_at(p, ns, h->image)->exe : NULL;
}

/* Adds the part of a wait that is in the phase, with as many samples as were taken there. */
static void put_phase(struct offcpu_before *b, const struct stack_sample *h, enum phase phase,
		      uint64_t from_ns, uint64_t to_ns)
{
	struct ledger *ledger = &b->taken->phase[phase];
	bool empty = !h->kernel_frames && !h->user_frames;
	enum drop why = empty ? DROP_STACK_USER : DROP_MAP_FULL;
	struct stack *stack;
	uint64_t cut, looks;

	from_ns = MAX(from_ns, phase_from(b, phase));
	to_ns = MIN(to_ns, phase_to(b, phase));
	if (from_ns >= to_ns)
		return;
	if (phase == PHASE_BEFORE)
		b->calm_ns = MAX(b->calm_ns, b->onset_ns - from_ns);
	/* A wait that spans a phase between two passes was seen by both. */
	looks = wait_recorder_count(b->recorder, from_ns, to_ns, &cut);
	looks = MAX(looks, 1ull);
	ledger->attempted += looks;
	if (signal_target_judge(b->target, h) == BELONGS_PERHAPS) {
		ledger->lost[DROP_STALE] += looks;
	} else if (empty || stack_table_put(&b->taken->stacks, h, phase, to_ns - from_ns,
					    find_exe(b, h, to_ns), &stack) < 0) {
		ledger->lost[why] += looks;
	} else {
		stack->count += looks - 1;
		ledger->emitted += looks;
	}
}

static void put_sample(struct offcpu_before *b, const struct stack_sample *h, uint64_t from_ns,
		       uint64_t to_ns)
{
	if (signal_target_judge(b->target, h) == BELONGS_NOT)
		return;
	put_phase(b, h, PHASE_BEFORE, from_ns, to_ns);
	put_phase(b, h, PHASE_ONSET, from_ns, to_ns);
}

/*
 * Adds the samples to the timeline: from the first to the last sample that found the wait, and a
 * little around them. The weights of stacks are means, for which half of the time to the next
 * sample is right; in a timeline that would be seconds without a sample.
 */
static void show_wait(const struct offcpu_before *b, const struct stack_sample *h,
		      const struct look_on *on, uint64_t first_ns, uint64_t last_ns)
{
	if (signal_target_judge(b->target, h) == BELONGS)
		timeline_add(b->target->timeline, timeline_pool(b->target->timeline, h),
			     timeline_part(h->wait, on), first_ns - MIN(first_ns, AROUND_NS),
			     MIN(last_ns + AROUND_NS, b->to_ns));
}

/* Adds a wait of the recorder that ended at `to_ns` and was last seen at `seen_ns`. */
static void put_wait(struct offcpu_before *b, const struct recorded_wait *wait, uint64_t to_ns,
		     uint64_t seen_ns)
{
	const struct stack_sample *plain = &wait->stack->sample;
	_cleanup_free_ struct stack_sample *h = malloc(stack_sample_bytes(plain));

	if (!h) {
		b->taken->phase[PHASE_BEFORE].attempted++;
		b->taken->phase[PHASE_BEFORE].lost[DROP_MAP_FULL]++;
		return;
	}
	memcpy(h, plain, stack_sample_bytes(plain));
	h->tid = wait->tid;
	h->on = wait_objects_add(&b->taken->objects, &wait->stack->on);
	show_wait(b, h, &wait->stack->on, wait->first_ns, seen_ns);
	put_sample(b, h, wait->from_ns, to_ns);
}

/* Context of take_wait. */
struct taking {
	struct offcpu_before *b;
	const struct pinned_maps *pins;
};

/* Whether the session's watch is the thread's watch, or one above it. */
static bool is_below(const struct taking *t, const struct stack_sample *h)
{
	const struct signal_target *target = t->b->target;
	uint32_t slot = h->slot;

	if (slot >= t->pins->abi.slots || t->pins->slots[slot].epoch != h->epoch)
		return false;
	for (int i = 0; i < WATCHES_NESTED && slot < t->pins->abi.slots; i++) {
		if (slot == target->slot)
			return t->pins->slots[slot].epoch == target->epoch;
		slot = t->pins->slots[slot].outer - 1;
	}
	return false;
}

static void take_wait(void *context, const struct recorded_wait *wait, bool open)
{
	const struct taking *t = context;
	struct offcpu_before *b = t->b;
	struct recorded_wait *copy;

	if (!is_below(t, &wait->stack->sample))
		return;
	if (!open) {
		put_wait(b, wait, MIN(wait->to_ns, b->to_ns), wait->seen_ns);
		return;
	}
	copy = malloc(sizeof(*copy));
	if (!copy || idmap_put(&b->open, wait->tid, copy) < 0) {
		free(copy);
		put_wait(b, wait, MIN(wait->seen_ns, b->to_ns), wait->seen_ns);
		return;
	}
	*copy = *wait;
	wait_stack_ref(copy->stack);
}

/* Counts the waits that did not fit into the recorder. */
static void take_losses(struct offcpu_before *b)
{
	const struct signal_target *t = b->target;
	uint64_t late = wait_recorder_lost(b->recorder, t->slot, t->epoch, b->onset_ns);
	uint64_t all = wait_recorder_lost(b->recorder, t->slot, t->epoch, b->from_ns);

	b->taken->phase[PHASE_ONSET].attempted += late;
	b->taken->phase[PHASE_ONSET].lost[DROP_HELD] += late;
	b->taken->phase[PHASE_BEFORE].attempted += all - late;
	b->taken->phase[PHASE_BEFORE].lost[DROP_HELD] += all - late;
}

void offcpu_before_begin(struct offcpu_before *b, const struct signal_host *host,
			 const struct signal_target *target, struct signal_stacks *taken)
{
	struct taking taking = { b, host->pins };

	*b = (struct offcpu_before){
		.recorder = host->waits,
		.taken = taken,
		.target = target,
		.processes = host->processes,
		.from_ns = target->start_ns - target->pre_ms * NSEC_PER_MSEC,
		.onset_ns = target->start_ns - target->onset_ms * NSEC_PER_MSEC,
		.to_ns = target->start_ns,
	};
	idmap_init(&b->open, OPEN_MAX);
	if (!b->recorder)
		return;
	b->last_ns = b->recorder->passes[b->recorder->last].began_ns;
	b->calm_passes = wait_recorder_count(b->recorder, b->from_ns, b->onset_ns, &b->cut);
	b->passes = wait_recorder_count(b->recorder, b->from_ns, b->to_ns, &b->cut);
	for (int i = 0; i < WAIT_RECORDER_PASSES; i++)
		timeline_look(target->timeline, b->recorder->passes[i].began_ns);
	wait_recorder_each(b->recorder, b->from_ns, take_wait, &taking);
	take_losses(b);
}

/* Half of the time since `since_ns` belongs to the earlier wait, half to the later one. */
static uint64_t half_since(const struct offcpu_before *b, uint64_t since_ns)
{
	return b->to_ns - (b->to_ns - MIN(b->to_ns, since_ns)) / 2;
}

static void drop_open(struct offcpu_before *b, struct recorded_wait *wait)
{
	wait_stacks_drop(&b->recorder->stacks, wait->stack);
	free(wait);
}

void offcpu_before_found(struct offcpu_before *b, const struct look_seen *seen)
{
	struct recorded_wait *wait;
	uint64_t since_ns;

	if (!b->recorder || !seen->record)
		return;
	wait = idmap_remove(&b->open, seen->head->tid);
	since_ns = wait ? wait->seen_ns : b->last_ns;
	if (wait && wait->switches == seen->record->switches &&
	    wait->stack->sample.wait == seen->sample->wait) {
		put_wait(b, wait, b->to_ns, b->to_ns);
	} else {
		if (wait)
			put_wait(b, wait, half_since(b, since_ns), wait->seen_ns);
		if (since_ns) {
			seen->sample->on = wait_objects_add(&b->taken->objects, &seen->record->on);
			put_sample(b, seen->sample, half_since(b, since_ns), b->to_ns);
		}
	}
	if (wait)
		drop_open(b, wait);
}

void offcpu_before_passed(struct offcpu_before *b, bool cut)
{
	struct recorded_wait *wait;
	uint64_t tid;

	if (!b->recorder)
		return;
	idmap_for_each (&b->open, i, tid, wait)
		put_wait(b, wait, cut ? wait->seen_ns : half_since(b, wait->seen_ns),
			 wait->seen_ns);
	offcpu_before_done(b);
}

void offcpu_before_done(struct offcpu_before *b)
{
	struct recorded_wait *wait;
	uint64_t tid;

	if (!b->recorder)
		return;
	idmap_for_each (&b->open, i, tid, wait)
		drop_open(b, wait);
	idmap_done(&b->open);
	b->recorder = NULL;
}

void offcpu_before_write(const struct offcpu_before *b, struct jsonw *w)
{
	jsonw_object(w, "before");
	jsonw_u64(w, "passes", b->passes);
	jsonw_u64(w, "cut", b->cut);
	if (b->last_ns)
		jsonw_u64(w, "last_ms", (b->to_ns - MIN(b->to_ns, b->last_ns)) / NSEC_PER_MSEC);
	jsonw_object_end(w);
}
