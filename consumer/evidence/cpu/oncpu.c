/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signal `oncpu`: samples of CPU time, and their ledger. Each attempt of the BPF sampler has a
 * number per slot and CPU (sample.seq). `first` holds each CPU's number when the session began,
 * `last` its number when the session ended. A number in between that did not arrive is lost, and
 * the kernel's counters have the reason.
 */
#include <stdlib.h>
#include <string.h>

#include "consumer/cgroup/cgroups.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/process/process_mappings.h"
#include "consumer/sampling/counter_history.h"
#include "consumer/sampling/recorder.h"
#include "consumer/sampling/sampler.h"
#include "consumer/signals/signal_target.h"
#include "consumer/signals/timeline.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/counter.h"
#include "shared/tools/macro.h"

struct oncpu {
	struct signal signal;
	struct signal_stacks taken;
	uint32_t cpus; /* possible CPUs */
	uint32_t hz;
	struct slot_counters *first, *last; /* per CPU, owned; one array */
	/*
	 * By phase before the trigger, and by CPU: number of the first sample, or ~0; owned, one
	 * array.
	 */
	uint64_t *phase_first[PHASE_DURING];
	/*
	 * The slot's counters, summed: at the last reading before the pre-roll, the first reading
	 * in the pre-roll, and the first reading in the onset.
	 */
	struct slot_counters outside, inside, onset;
	uint64_t filtered[PHASE_COUNT_]; /* samples of other processes of the slot */
	uint64_t usage_start_us;	 /* the cgroup's CPU time; ~0 if not known */
};

static const char of_a_choice[] =
	"the CPU time of this choice of processes is not counted by the kernel";
static const char made_anew[] =
	"another cgroup of this name was made in the meantime: its CPU time begins at 0";
static const char unreadable[] =
	"cpu.stat of the cgroup could not be read, at the begin or at the end";

static struct oncpu *oncpu_of(struct signal *s)
{
	return (struct oncpu *)s;
}

static bool is_auto(const struct trigger_reason *reason)
{
	return true;
}

static void destroy_oncpu(struct signal *signal)
{
	struct oncpu *s = oncpu_of(signal);

	stack_table_done(&s->taken.stacks);
	free(s->first);
	free(s->phase_first[PHASE_BEFORE]);
	free(s);
}

static struct signal *create_oncpu(const struct signal_host *host,
				   const struct signal_target *target)
{
	struct oncpu *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->cpus = host->pins->abi.cpus_possible;
	s->hz = host->pins->abi.hz;
	s->signal.taken = &s->taken;
	stack_table_init(&s->taken.stacks, host->stacks);
	s->taken.expected = UINT64_MAX;
	s->taken.expected_why = "the session has not ended";
	s->first = calloc(2 * (size_t)s->cpus, sizeof(*s->first));
	s->phase_first[PHASE_BEFORE] = malloc(PHASE_DURING * s->cpus * sizeof(uint64_t));
	if (!s->first || !s->phase_first[PHASE_BEFORE]) {
		destroy_oncpu(&s->signal);
		return NULL;
	}
	s->last = s->first + s->cpus;
	memset(s->phase_first[PHASE_BEFORE], 0xff, PHASE_DURING * s->cpus * sizeof(uint64_t));
	s->phase_first[PHASE_ONSET] = s->phase_first[PHASE_BEFORE] + s->cpus;
	return &s->signal;
}

/* Returns whether the session takes only some of the cgroup's processes. */
static bool is_choice(const struct signal_target *target)
{
	return target->by_process || target->only_tgid || target->only_rule;
}

/* Reads the cgroup's CPU time so far; ~0 if it cannot be read. */
static uint64_t read_usage_us(const struct signal_host *host, const struct signal_target *target)
{
	static const char key[] = "usage_usec ";
	char text[1024];

	if (is_choice(target) ||
	    cgroups_read(host->cgroups, target->cgroup, "cpu.stat", text, sizeof(text)) < 0 ||
	    strncmp(text, key, sizeof(key) - 1) != 0)
		return UINT64_MAX;
	return strtoull(text + sizeof(key) - 1, NULL, 10);
}

static void count_sample(struct oncpu *s, const struct signal_target *target,
			 const struct stack_sample *h, const struct process *p, enum phase phase)
{
	enum belonging belonging = signal_target_judge(target, h);
	struct ledger *ledger = &s->taken.phase[phase];
	uint64_t tick_ns = NSEC_PER_SEC / s->hz;
	struct module *exe;

	if (phase < PHASE_DURING)
		s->phase_first[phase][h->cpu] =
			MIN(s->phase_first[phase][h->cpu], (uint64_t)h->seq);
	if (belonging == BELONGS_NOT) {
		s->filtered[phase]++;
		return;
	}
	if (belonging == BELONGS_PERHAPS) {
		ledger->lost[DROP_STALE]++;
		return;
	}
	if (!(h->flags & SAMPLE_CAPTURE))
		tick_ns *= RECORDER_DIVISOR;
	timeline_add(target->timeline, timeline_pool(target->timeline, h), ACCOUNT_RUNNING,
		     h->time_ns - MIN(h->time_ns, tick_ns), h->time_ns);
	exe = p ? process_mappings_at(p, h->time_ns, h->image)->exe : NULL;
	if (stack_table_add(&s->taken.stacks, h, phase, tick_ns, exe) < 0)
		ledger->lost[DROP_MAP_FULL]++;
	else
		ledger->emitted++;
}

/* Returns whether the sample's number precedes the session's first number on that CPU. */
static bool came_before(const struct oncpu *s, const struct stack_sample *h)
{
	return (int32_t)(h->seq - (uint32_t)s->first[h->cpu].attempted) < 0;
}

/* Returns the phase of a sample from before the trigger. */
static enum phase find_phase(const struct signal_target *target, const struct stack_sample *h)
{
	return h->time_ns + target->onset_ms * NSEC_PER_MSEC >= target->start_ns ? PHASE_ONSET
										 : PHASE_BEFORE;
}

/* Context of take_before, which counts the recorder's samples. */
struct pre_roll {
	struct oncpu *s;
	const struct signal_host *host;
	const struct signal_target *target;
};

static void take_before(void *context, const struct stack_sample *h)
{
	const struct pre_roll *c = context;

	if (came_before(c->s, h))
		count_sample(c->s, c->target, h,
			     process_find(c->host->processes, h->tgid, h->start_ns),
			     find_phase(c->target, h));
}

static void add_counters(struct slot_counters *sum, const struct slot_counters *counters)
{
	sum->attempted += counters->attempted;
	for (size_t i = 0; i < SLOT_LOST_REASONS; i++)
		sum->lost[i] += counters->lost[i];
}

/* Returns the counters of all CPUs at the session's begin. */
static struct slot_counters sum_first(const struct oncpu *s)
{
	struct slot_counters sum = {};

	for (uint32_t cpu = 0; cpu < s->cpus; cpu++)
		add_counters(&sum, &s->first[cpu]);
	return sum;
}

/* Returns the counters at the first reading since `from_ns`, or at the session's begin. */
static struct slot_counters sum_since(const struct oncpu *s, const struct signal_target *target,
				      uint64_t from_ns)
{
	const struct counter_point *point = NULL;

	/* One ms later: the program takes a sample's time before it counts the attempt. */
	if (target->counters)
		point = counter_history_from(target->counters, from_ns + NSEC_PER_MSEC);
	return point ? point->sum : sum_first(s);
}

/* Records the slot's counters around the beginnings of the pre-roll and of the onset. */
static void note_window(struct oncpu *s, const struct signal_target *target)
{
	uint64_t from_ns = target->start_ns - target->pre_ms * NSEC_PER_MSEC;
	const struct counter_point *before = NULL;

	if (target->counters)
		before = counter_history_until(target->counters, from_ns);
	s->inside = sum_since(s, target, from_ns);
	s->onset = sum_since(s, target, target->start_ns - target->onset_ms * NSEC_PER_MSEC);
	s->outside = before ? before->sum : s->inside;
}

static void begin_oncpu(struct signal *signal, const struct signal_host *host,
			const struct signal_target *target)
{
	struct oncpu *s = oncpu_of(signal);
	struct pre_roll pre_roll = { s, host, target };
	size_t ticking, missing;
	const char *why;

	sampler_state(host->sampler, &ticking, &missing, &why);
	signal->off_reason = ticking ? NULL : why;
	signal->partial_reason = missing ? why : NULL;
	pinned_maps_counters(host->pins, target->slot, s->first);
	s->usage_start_us = read_usage_us(host, target);
	note_window(s, target);
	recorder_each(host->recorder, target->slot, target->epoch,
		      target->start_ns - target->pre_ms * NSEC_PER_MSEC, take_before, &pre_roll);
}

static bool take_sample(struct signal *signal, const struct signal_target *target,
			const struct stack_sample *h, const struct process *p)
{
	struct oncpu *s = oncpu_of(signal);

	if (h->flags & SAMPLE_WAKER)
		return false;
	if (target->stop_ns && (int32_t)(h->seq - (uint32_t)s->last[h->cpu].attempted) >= 0)
		return false;
	if (!came_before(s, h))
		count_sample(s, target, h, p, PHASE_DURING);
	else if (h->time_ns + target->pre_ms * NSEC_PER_MSEC >= target->start_ns)
		count_sample(s, target, h, p, find_phase(target, h));
	return true;
}

static void end_oncpu(struct signal *signal, const struct signal_host *host,
		      const struct signal_target *target)
{
	struct oncpu *s = oncpu_of(signal);
	uint64_t usage_us, grown_us;

	pinned_maps_counters(host->pins, target->slot, s->last);
	usage_us = read_usage_us(host, target);
	if (usage_us == UINT64_MAX || s->usage_start_us == UINT64_MAX)
		s->taken.expected_why = is_choice(target) ? of_a_choice : unreadable;
	else if (!counter_growth(s->usage_start_us, usage_us, &grown_us))
		s->taken.expected_why = made_anew;
	else
		s->taken.expected = grown_us * s->hz / 1000000;
}

static bool is_settled(const struct signal *signal)
{
	const struct oncpu *s = (const struct oncpu *)signal;
	const struct ledger *during = &s->taken.phase[PHASE_DURING];
	uint64_t here = during->emitted + ledger_lost(during) + s->filtered[PHASE_DURING];
	uint64_t attempted = 0;

	for (uint32_t cpu = 0; cpu < s->cpus; cpu++)
		attempted += s->last[cpu].attempted - s->first[cpu].attempted;
	return here >= attempted;
}

/*
 * Counts the attempts of the pre-roll by the numbers that arrived. On each CPU, numbers from the
 * first onset sample on belong to the onset, and numbers from the first sample of all to the before
 * phase.
 */
static void count_numbers(const struct oncpu *s, uint64_t *ret_before, uint64_t *ret_onset)
{
	uint64_t before = 0, onset = 0;

	for (uint32_t cpu = 0; cpu < s->cpus; cpu++) {
		uint64_t of_before = s->phase_first[PHASE_BEFORE][cpu];
		uint64_t of_onset = s->phase_first[PHASE_ONSET][cpu];
		uint32_t end = (uint32_t)s->first[cpu].attempted;

		if (of_onset != UINT64_MAX) {
			onset += end - (uint32_t)of_onset;
			end = (uint32_t)of_onset;
		}
		if (of_before != UINT64_MAX)
			before += end - (uint32_t)of_before;
	}
	*ret_before = before;
	*ret_onset = onset;
}

/*
 * Sets `attempted` of the pre-roll. At least the attempts since the first reading of the counters
 * in the pre-roll belong to it, even if none of them arrived; the onset works the same way.
 */
static void attempt_pre_roll(struct oncpu *s, struct ledger *before, struct ledger *onset)
{
	uint64_t first = sum_first(s).attempted, all, known;

	count_numbers(s, &before->attempted, &onset->attempted);
	all = MAX(before->attempted + onset->attempted, first - s->inside.attempted);
	known = before->emitted + ledger_lost(before) + s->filtered[PHASE_BEFORE];
	onset->attempted = MAX(onset->attempted, first - s->onset.attempted);
	known = MIN(all, known);
	onset->attempted = MIN(onset->attempted, all - known);
	before->attempted = all - onset->attempted;
	before->attempted -= MIN(before->attempted, s->filtered[PHASE_BEFORE]);
	onset->attempted -= MIN(onset->attempted, s->filtered[PHASE_ONSET]);
}

static void subtract_lost(uint64_t lost[SLOT_LOST_REASONS], const struct slot_counters *to,
			  const struct slot_counters *from)
{
	for (size_t i = 0; i < SLOT_LOST_REASONS; i++)
		lost[i] = to->lost[i] - from->lost[i];
}

/*
 * Closes the ledgers of the pre-roll, after counting all present samples. Missing samples are
 * assigned to the losses of their own time first, then to the losses of the adjacent time.
 */
static void close_pre_roll(struct oncpu *s, struct ledger *before, struct ledger *onset)
{
	uint64_t late[SLOT_LOST_REASONS], early[SLOT_LOST_REASONS], around[SLOT_LOST_REASONS];
	const struct slot_counters first = sum_first(s);

	attempt_pre_roll(s, before, onset);
	subtract_lost(late, &first, &s->onset);
	subtract_lost(early, &s->onset, &s->inside);
	subtract_lost(around, &s->inside, &s->outside);
	ledger_assign(onset, late);
	ledger_assign(before, early);
	ledger_assign(onset, early);
	ledger_assign(before, around);
	ledger_close(onset, around);
	ledger_close(before, late);
}

static void close_oncpu(struct signal *signal, const struct signal_host *host,
			const struct signal_target *target)
{
	struct oncpu *s = oncpu_of(signal);
	_cleanup_free_ struct slot_counters *counters = calloc(s->cpus, sizeof(*counters));
	bool fresh = counters && pinned_maps_counters(host->pins, target->slot, counters) == 0;
	uint64_t lost_during[SLOT_LOST_REASONS] = {};
	struct ledger *during = &s->taken.phase[PHASE_DURING];

	for (uint32_t cpu = 0; cpu < s->cpus; cpu++) {
		const struct slot_counters *end = fresh ? &counters[cpu] : &s->last[cpu];

		during->attempted += s->last[cpu].attempted - s->first[cpu].attempted;
		for (size_t i = 0; i < SLOT_LOST_REASONS; i++)
			lost_during[i] += end->lost[i] - s->first[cpu].lost[i];
	}
	during->attempted -= MIN(during->attempted, s->filtered[PHASE_DURING]);
	close_pre_roll(s, &s->taken.phase[PHASE_BEFORE], &s->taken.phase[PHASE_ONSET]);
	ledger_close(during, lost_during);
	signal_target_name_cgroups(&s->taken.stacks, host, target);
}

const struct signal_kind oncpu_kind = {
	.id = SIGNAL_ONCPU,
	.stacks_of = STACKS_RUNNING,
	.auto_why = "auto: running threads explain a part of the stalls on every resource",
	.is_auto = is_auto,
	.create = create_oncpu,
	.destroy = destroy_oncpu,
	.begin = begin_oncpu,
	.sample = take_sample,
	.end = end_oncpu,
	.is_settled = is_settled,
	.close = close_oncpu,
};
