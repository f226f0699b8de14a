/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sample.c: the sampler: the sampled threads, their stacks, and that every attempt is accounted
 * for.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "sample_fixture.h"

HARNESS_LOADS("on_*", "sampler");

static void misses_count_nothing(void **state)
{
	struct fixture f = sample_begin(NULL, SLOT_CAPTURE, 0);
	uint64_t other = f.id + 1000000;
	int watches = bpf_map__fd(f.h->skel->maps.watches);
	struct slot_counters c;

	assert_int_equal(bpf_map_delete_elem(watches, &f.id), 0);
	harness_watch(f.h, other, SLOT, SLOT_CAPTURE, 0);
	c = sample_for(f.h, 200, 0);
	assert_int_equal(c.attempted, 0);
	assert_int_equal(harness_totals(f.h).ticks_watched, 0);
	assert_int_equal(f.h->samples.count, 0);
	sample_end(&f);
}

static void armed_zero_and_idle_take_nothing(void **state)
{
	struct fixture f = sample_begin(NULL, SLOT_CAPTURE, 0);

	f.h->control->armed = 0;
	assert_int_equal(sample_for(f.h, 100, 0).attempted, 0);
	f.h->control->armed = 1;
	f.h->slots[SLOT].state = SLOT_IDLE;
	assert_int_equal(sample_for(f.h, 100, 0).attempted, 0);
	f.h->slots[SLOT].state = SLOT_CAPTURE;
	assert_true(sample_for(f.h, 0, 1).attempted > 0);
	sample_end(&f);
}

static void hits_are_accounted_for(void **state)
{
	struct fixture f = sample_begin(NULL, SLOT_CAPTURE, 0);
	struct slot_counters c = sample_for(f.h, 0, 100);
	uint64_t start_ns = harness_start_ns(f.h, f.pid);
	uint32_t next[HARNESS_CPUS] = {};
	struct target target;

	assert_true(c.emitted > 0);
	assert_int_equal(harness_lost(&c), 0);
	assert_int_equal(f.h->samples.count, c.emitted);
	assert_int_equal(harness_totals(f.h).ticks_watched, c.attempted);
	for (size_t i = 0; i < f.h->samples.count; i++) {
		const struct sample *s = sample_at(f.h, i);

		assert_int_equal(f.h->samples.bytes[i], sample_bytes(s));
		assert_int_equal(s->tgid, f.pid);
		assert_int_equal(s->tid, f.pid);
		assert_int_equal(s->start_ns, start_ns);
		assert_int_equal(s->slot, SLOT);
		assert_int_equal(s->epoch, SLOT + 100);
		assert_true(s->flags & SAMPLE_CAPTURE);
		assert_string_equal(s->comm, "t-burn");
		assert_true(s->user_frames > 0);
		assert_in_range(s->cpu, 0, HARNESS_CPUS - 1);
		assert_int_equal(s->seq, next[s->cpu]++);
		/* Without kernel frames the tick hit user mode, with them it did not. */
		assert_int_equal(!(s->flags & SAMPLE_IN_USER), s->kernel_frames > 0);
	}
	assert_true(harness_target(f.h, f.pid, &target));
	assert_int_equal(target.flags, TARGET_WOKEN);
	assert_int_equal(target.rule, NO_SLOT);
	sample_end(&f);
}

/* Of a slot that only records: `set` stands in the control words, one in `takes` is taken. */
static void recorder_takes_one_in(uint32_t set, uint32_t takes)
{
	struct fixture f = sample_begin(NULL, SLOT_RECORDER, 0);
	struct slot_counters c;
	uint64_t watched;

	f.h->control->divisor = set;
	c = sample_for(f.h, 0, 10);
	watched = harness_totals(f.h).ticks_watched;
	/* Each CPU may have begun some ticks it did not take. */
	assert_in_range(watched - c.attempted * takes, 0,
			(takes - 1) * (uint64_t)libbpf_num_possible_cpus());
	assert_true(c.attempted > 0);
	for (size_t i = 0; i < f.h->samples.count; i++)
		assert_false(sample_at(f.h, i)->flags & SAMPLE_CAPTURE);
	sample_end(&f);
}

static void recorder_takes_one_in_five(void **state)
{
	recorder_takes_one_in(0, RECORDER_DIVISOR);
}

static void recorder_follows_the_divisor(void **state)
{
	recorder_takes_one_in(1, 1);
	recorder_takes_one_in(12, 12);
	recorder_takes_one_in(DIVISOR_MAX + 1, RECORDER_DIVISOR);
	recorder_takes_one_in(0xffffffff, RECORDER_DIVISOR);
}

/* Leaves no room in `targets`. */
static void fill_targets(const struct harness *h)
{
	int fd = bpf_map__fd(h->skel->maps.targets);
	struct target target = {};

	for (uint32_t i = 0; i < 1024; i++) {
		struct process_key key = { .tgid = 0x7f000000 + i };

		if (bpf_map_update_elem(fd, &key, &target, BPF_ANY))
			break;
	}
}

static void by_process_needs_a_match(void **state)
{
	struct fixture f = sample_begin(NULL, SLOT_CAPTURE, SLOT_BY_PROCESS);

	assert_int_equal(sample_for(f.h, 200, 0).attempted, 0);
	harness_target_set(f.h, f.pid, TARGET_MAPPED);
	assert_int_equal(sample_for(f.h, 200, 0).attempted, 0);
	harness_target_set(f.h, f.pid, TARGET_MATCHED);
	assert_true(sample_for(f.h, 0, 1).attempted > 0);
	sample_end(&f);
}

/*
 * A group with a slot that takes matched processes only, and a burning one that began under a rule.
 */
static struct fixture begin_matched(const struct harness_options *options, bool full)
{
	struct fixture f = { .h = harness_new(options) };

	f.id = harness_group(f.h, "burn", f.dir);
	if (full)
		fill_targets(f.h);
	harness_discover(f.h);
	harness_rule(f.h, 0, "t-burn", true, 7, 3);
	f.pid = harness_spawn("t-burn", "burn", f.dir);
	harness_watch(f.h, f.id, SLOT, SLOT_CAPTURE, SLOT_BY_PROCESS);
	return f;
}

/* What the kernel side knew at the tick is in every sample. */
static void samples_carry_the_match(void **state)
{
	struct fixture f = begin_matched(NULL, false);

	sample_for(f.h, 0, 20);
	for (size_t i = 0; i < f.h->samples.count; i++) {
		assert_true(sample_at(f.h, i)->flags & SAMPLE_MATCHED);
		assert_int_equal(sample_at(f.h, i)->rule, 7);
		assert_int_equal(sample_at(f.h, i)->generation, 3);
	}
	sample_end(&f);
	f = sample_begin(NULL, SLOT_CAPTURE, 0);
	sample_for(f.h, 0, 20);
	for (size_t i = 0; i < f.h->samples.count; i++) {
		assert_false(sample_at(f.h, i)->flags & SAMPLE_MATCHED);
		assert_int_equal(sample_at(f.h, i)->rule, NO_SLOT);
	}
	sample_end(&f);
}

/* A process that `targets` has no room for matches by its name, and no tick of it is passed over.
 */
static void full_targets_still_match(void **state)
{
	struct harness_options options = { .targets = 1 };
	struct fixture f = begin_matched(&options, true);
	struct target target;

	sample_for(f.h, 0, 20);
	assert_false(harness_target(f.h, f.pid, &target));
	for (size_t i = 0; i < f.h->samples.count; i++) {
		assert_true(sample_at(f.h, i)->flags & SAMPLE_MATCHED);
		assert_int_equal(sample_at(f.h, i)->rule, 7);
		assert_int_equal(sample_at(f.h, i)->generation, 3);
	}
	sample_end(&f);
}

/* Ticks hit the watched group for 200 ms and more, and nothing is emitted. */
static void assert_idle(struct fixture *f)
{
	uint64_t emitted = harness_counters(f->h, SLOT).emitted;
	uint64_t stale = harness_totals(f->h).stale_ticks;

	harness_sleep_ms(200);
	for (int i = 0; i < WAIT_MS / 10 && harness_totals(f->h).stale_ticks == stale; i++)
		harness_sleep_ms(10);
	assert_true(harness_totals(f->h).stale_ticks > stale);
	assert_int_equal(harness_counters(f->h, SLOT).emitted, emitted);
}

static void dead_man(void **state)
{
	struct fixture f = sample_begin(NULL, SLOT_CAPTURE, 0);

	f.h->control->armed = 0;
	harness_tick(f.h, HZ);
	f.h->control->stale_ns = 0; /* no promise: stale at once */
	f.h->control->armed = 1;
	assert_idle(&f);
	assert_int_equal(harness_counters(f.h, SLOT).emitted, 0);
	f.h->control->heartbeat_ns = harness_now_ns() - 60000000;
	f.h->control->stale_ns = 50000000;
	assert_idle(&f);
	/* A heartbeat from the future is no sign of life either. */
	f.h->control->heartbeat_ns = ~0ull;
	assert_idle(&f);
	f.h->control->heartbeat_ns = harness_now_ns();
	f.h->control->stale_ns = 60000000000u;
	for (int i = 0; i < WAIT_MS / 10 && !harness_counters(f.h, SLOT).emitted; i++)
		harness_sleep_ms(10);
	assert_true(harness_counters(f.h, SLOT).emitted > 0);
	sample_end(&f);
}

static void stale_is_accounted_for(void **state)
{
	struct fixture f = sample_begin(NULL, SLOT_CAPTURE, 0);
	struct slot_counters c;

	f.h->control->armed = 0;
	harness_tick(f.h, HZ);
	f.h->control->stale_ns = 0;
	f.h->control->armed = 1;
	sample_await(f.h, 20);
	sample_stop(f.h);
	c = harness_counters(f.h, SLOT);
	assert_int_equal(c.lost[DROP_STALE], c.attempted);
	assert_int_equal(harness_totals(f.h).stale_ticks, c.attempted);
	sample_end(&f);
}

static void full_ring_is_counted(void **state)
{
	struct harness_options options = { .samples_bytes = 4096 };
	struct fixture f = sample_begin(&options, SLOT_CAPTURE, 0);
	struct slot_counters c = sample_for(f.h, 0, 200);
	const struct error_record *record;

	assert_true(c.emitted > 0 && c.lost[DROP_RING_FULL] > 0);
	assert_int_equal(c.emitted, f.h->samples.count);
	assert_true(harness_errors(f.h, ERROR_SAMPLES_FULL) > 0);
	record = f.h->errors.records[0];
	assert_int_equal(record->slot, SLOT);
	assert_int_equal(record->tgid, f.pid);
	assert_string_equal(record->comm, "t-burn");
	assert_true(record->space >= sizeof(struct sample));
	assert_true(record->error < 0);
	sample_end(&f);
}

static void full_targets_go_on(void **state)
{
	struct harness_options options = { .targets = 1 };
	struct fixture f = sample_begin(&options, SLOT_CAPTURE, 0);
	struct slot_counters c;

	fill_targets(f.h);
	c = sample_for(f.h, 0, 20);
	assert_int_equal(c.emitted, c.attempted);
	assert_true(c.emitted > 0);
	assert_true(harness_totals(f.h).targets_full > 0);
	assert_true(harness_errors(f.h, ERROR_TARGETS_FULL) > 0);
	sample_end(&f);
}

/* Whether the samples ring wakes a sleeper within `ms` of ticks that emit something. */
static bool wakes_within(struct fixture *f, uint32_t wake_bytes, int ms)
{
	struct pollfd p = { .fd = ring_buffer__epoll_fd(f->h->samples.ring), .events = POLLIN };
	uint64_t emitted = harness_counters(f->h, SLOT).emitted;
	bool woken = false;

	f->h->control->wake_bytes = wake_bytes;
	for (int i = 0; i < WAIT_MS / ms && harness_counters(f->h, SLOT).emitted == emitted; i++) {
		harness_tick(f->h, HZ);
		/* epoll reports present records on request, too: ask while the ring is empty. */
		woken = poll(&p, 1, ms) > 0;
		sample_stop(f->h);
	}
	assert_true(harness_counters(f->h, SLOT).emitted > emitted);
	harness_forget(f->h);
	return woken;
}

static bool wakes(struct fixture *f, uint32_t wake_bytes)
{
	return wakes_within(f, wake_bytes, WAIT_MS);
}

static bool lets_sleep(struct fixture *f, uint32_t wake_bytes)
{
	return !wakes_within(f, wake_bytes, 300);
}

static void wakes_above_the_fill_only(void **state)
{
	struct fixture f = sample_begin(NULL, SLOT_CAPTURE, 0);

	assert_true(wakes(&f, 0)); /* the first tick of its process */
	assert_true(lets_sleep(&f, 0));
	assert_true(lets_sleep(&f, 1u << 30));
	assert_true(wakes(&f, 4096));
	assert_true(wakes(&f, 4096));
	sample_end(&f);
}

/* An image may have gone before the next drain: its first tick in a capture wakes, and no other. */
static void wakes_for_a_new_image(void **state)
{
	struct fixture f = sample_begin(NULL, SLOT_CAPTURE, 0);

	assert_true(wakes(&f, 0));
	assert_true(lets_sleep(&f, 0));
	harness_target_set(f.h, f.pid, 0); /* as exec leaves it */
	assert_true(wakes(&f, 0));
	assert_true(lets_sleep(&f, 0));
	harness_target_set(f.h, f.pid, TARGET_MAPPED);
	assert_true(lets_sleep(&f, 0));
	sample_end(&f);
	f = sample_begin(NULL, SLOT_RECORDER, 0);
	assert_true(lets_sleep(&f, 0));
	f.h->slots[SLOT].state = SLOT_CAPTURE;
	assert_true(wakes(&f, 0));
	sample_end(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(misses_count_nothing),
		cmocka_unit_test(armed_zero_and_idle_take_nothing),
		cmocka_unit_test(hits_are_accounted_for),
		cmocka_unit_test(recorder_takes_one_in_five),
		cmocka_unit_test(recorder_follows_the_divisor),
		cmocka_unit_test(by_process_needs_a_match),
		cmocka_unit_test(samples_carry_the_match),
		cmocka_unit_test(full_targets_still_match),
		cmocka_unit_test(dead_man),
		cmocka_unit_test(stale_is_accounted_for),
		cmocka_unit_test(full_ring_is_counted),
		cmocka_unit_test(full_targets_go_on),
		cmocka_unit_test(wakes_above_the_fill_only),
		cmocka_unit_test(wakes_for_a_new_image),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
