/* SPDX-License-Identifier: BSD-2-Clause */
/* sample.c: the sampler: who is sampled, with which stacks, and that every attempt is accounted
 * for. */
#include <link.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "harness.h"

#define HZ	997
#define SLOT	5
#define WAIT_MS 30000 /* of a busy machine, for what comes at once on any other */

/* A group with a burning process in it, watched. */
struct fixture {
	struct harness *h;
	char dir[4096];
	uint64_t id;
	pid_t pid;
};

static struct fixture begin(const struct harness_options *options, uint32_t state, uint32_t flags)
{
	struct fixture f = { .h = harness_new(options) };

	f.id = harness_group(f.h, "burn", f.dir);
	f.pid = harness_spawn("t-burn", "burn", f.dir);
	harness_watch(f.h, f.id, SLOT, state, flags);
	return f;
}

static void end(struct fixture *f)
{
	harness_kill(f->pid);
	harness_free(f->h);
}

static void stop_ticks(struct harness *h)
{
	for (int i = 0; i < HARNESS_CPUS; i++) {
		bpf_link__destroy(h->ticks[i]);
		h->ticks[i] = NULL;
	}
}

/* Waits until more than `count` samples were attempted, however little the group runs. */
static void await_more(struct harness *h, uint64_t count)
{
	for (int i = 0; i < WAIT_MS / 10 && harness_counters(h, SLOT).attempted <= count; i++)
		harness_sleep_ms(10);
	assert_true(harness_counters(h, SLOT).attempted > count);
}

/*
 * Samples for `ms`, and on until `more` samples were attempted; stops, drains. The slot's account
 * must be even.
 */
static struct slot_counters sample_for(struct harness *h, unsigned int ms, uint64_t more)
{
	uint64_t count = harness_counters(h, SLOT).attempted;
	struct slot_counters c;

	harness_tick(h, HZ);
	harness_sleep_ms(ms);
	if (more)
		await_more(h, count + more - 1);
	stop_ticks(h);
	harness_drain(h);
	c = harness_counters(h, SLOT);
	assert_int_equal(c.attempted, c.emitted + harness_lost(&c));
	return c;
}

static const struct sample *sample_at(const struct harness *h, size_t i)
{
	return h->samples.records[i];
}

/* The record is as long as its frames say. */
static size_t sample_bytes(const struct sample *s)
{
	size_t user = s->flags & SAMPLE_BUILD_ID ? sizeof(struct frame_build_id) : 8;

	if (s->flags & SAMPLE_ADDRESSES)
		user += 8;
	return sizeof(*s) + 8 * (size_t)s->kernel_frames + user * s->user_frames;
}

static void misses_count_nothing(void **state)
{
	struct fixture f = begin(NULL, SLOT_CAPTURE, 0);
	uint64_t other = f.id + 1000000;
	int watches = bpf_map__fd(f.h->skel->maps.watches);
	struct slot_counters c;

	assert_int_equal(bpf_map_delete_elem(watches, &f.id), 0);
	harness_watch(f.h, other, SLOT, SLOT_CAPTURE, 0);
	c = sample_for(f.h, 200, 0);
	assert_int_equal(c.attempted, 0);
	assert_int_equal(harness_totals(f.h).ticks_watched, 0);
	assert_int_equal(f.h->samples.count, 0);
	end(&f);
}

static void armed_zero_and_idle_take_nothing(void **state)
{
	struct fixture f = begin(NULL, SLOT_CAPTURE, 0);

	f.h->control->armed = 0;
	assert_int_equal(sample_for(f.h, 100, 0).attempted, 0);
	f.h->control->armed = 1;
	f.h->slots[SLOT].state = SLOT_IDLE;
	assert_int_equal(sample_for(f.h, 100, 0).attempted, 0);
	f.h->slots[SLOT].state = SLOT_CAPTURE;
	assert_true(sample_for(f.h, 0, 1).attempted > 0);
	end(&f);
}

static void hits_are_accounted_for(void **state)
{
	struct fixture f = begin(NULL, SLOT_CAPTURE, 0);
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
	end(&f);
}

/* A process that ends has given its memory back: of its last ticks only the kernel's part is told.
 */
static void the_ending_have_no_user_stack(void **state)
{
	struct fixture f = begin(NULL, SLOT_CAPTURE, 0);
	size_t ending = 0;

	for (int i = 0; i < 50 && !ending; i++) {
		pid_t pid = harness_spawn("t-churn", "churn", f.dir);

		harness_forget(f.h);
		harness_tick(f.h, 4000);
		harness_kill(pid);
		stop_ticks(f.h);
		harness_drain(f.h);
		for (size_t k = 0; k < f.h->samples.count; k++) {
			const struct sample *s = sample_at(f.h, k);

			if (s->tgid != (uint32_t)pid)
				continue;
			ending += s->flags & SAMPLE_KTHREAD ? 1 : 0;
			assert_int_equal(s->user_frames > 0, !(s->flags & SAMPLE_KTHREAD));
			assert_true(s->user_frames + s->kernel_frames > 0);
			assert_int_equal(f.h->samples.bytes[k], sample_bytes(s));
		}
	}
	assert_true(ending > 0);
	end(&f);
}

struct place {
	uintptr_t address;
	uint64_t offset;
};

static int find_place(struct dl_phdr_info *info, size_t bytes, void *context)
{
	struct place *place = context;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && place->address >= at &&
		    place->address < at + p->p_memsz)
			place->offset = place->address - at + p->p_offset;
	}
	return 0;
}

/* Most samples of a burning child have harness_burn as their leaf, by file offset. */
static void build_ids_until_mapped(void **state)
{
	struct fixture f = begin(NULL, SLOT_CAPTURE, 0);
	struct place burn = { .address = (uintptr_t)harness_burn };
	size_t good = 0, both = 0, raw = 0;

	dl_iterate_phdr(find_place, &burn);
	assert_true(burn.offset > 0);
	sample_for(f.h, 0, 100);
	for (size_t i = 0; i < f.h->samples.count; i++) {
		const struct sample *s = sample_at(f.h, i);
		struct frame_build_id frame;
		uint64_t address;

		assert_true(s->flags & SAMPLE_BUILD_ID);
		if (!s->user_frames)
			continue;
		memcpy(&frame, (const char *)(s + 1) + 8 * (size_t)s->kernel_frames, sizeof(frame));
		good += frame.status == 1 && frame.offset_or_ip - burn.offset < 512;
		/* Behind them stand the addresses, leaf first too. */
		assert_true(s->flags & SAMPLE_ADDRESSES);
		memcpy(&address,
		       (const char *)(s + 1) + 8 * (size_t)s->kernel_frames +
			       sizeof(frame) * s->user_frames,
		       sizeof(address));
		both += frame.status == 1 && frame.offset_or_ip - burn.offset < 512 &&
			((address ^ frame.offset_or_ip) & 0xfff) == 0 && address > burn.offset;
	}
	assert_true(f.h->samples.count > 0 && good * 10 >= f.h->samples.count * 9);
	assert_int_equal(both, good);

	harness_forget(f.h);
	harness_target_set(f.h, f.pid, TARGET_MAPPED);
	sample_for(f.h, 0, 100);
	for (size_t i = 0; i < f.h->samples.count; i++) {
		const struct sample *s = sample_at(f.h, i);
		uint64_t leaf;

		assert_false(s->flags & SAMPLE_BUILD_ID);
		if (!s->user_frames)
			continue;
		memcpy(&leaf, (const char *)(s + 1) + 8 * (size_t)s->kernel_frames, sizeof(leaf));
		raw += ((leaf - burn.offset) & 0xfff) < 512;
	}
	assert_true(f.h->samples.count > 0 && raw * 10 >= f.h->samples.count * 9);
	end(&f);
}

/* Of a slot that only records: `set` stands in the control words, one in `takes` is taken. */
static void recorder_takes_one_in(uint32_t set, uint32_t takes)
{
	struct fixture f = begin(NULL, SLOT_RECORDER, 0);
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
	end(&f);
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

static void by_process_needs_a_match(void **state)
{
	struct fixture f = begin(NULL, SLOT_CAPTURE, SLOT_BY_PROCESS);

	assert_int_equal(sample_for(f.h, 200, 0).attempted, 0);
	harness_target_set(f.h, f.pid, TARGET_MAPPED);
	assert_int_equal(sample_for(f.h, 200, 0).attempted, 0);
	harness_target_set(f.h, f.pid, TARGET_MATCHED);
	assert_true(sample_for(f.h, 0, 1).attempted > 0);
	end(&f);
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
	struct fixture f = begin(NULL, SLOT_CAPTURE, 0);

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
	end(&f);
}

static void stale_is_accounted_for(void **state)
{
	struct fixture f = begin(NULL, SLOT_CAPTURE, 0);
	struct slot_counters c;

	f.h->control->armed = 0;
	harness_tick(f.h, HZ);
	f.h->control->stale_ns = 0;
	f.h->control->armed = 1;
	await_more(f.h, 20);
	stop_ticks(f.h);
	c = harness_counters(f.h, SLOT);
	assert_int_equal(c.lost[DROP_STALE], c.attempted);
	assert_int_equal(harness_totals(f.h).stale_ticks, c.attempted);
	end(&f);
}

static void full_ring_is_counted(void **state)
{
	struct harness_options options = { .samples_bytes = 4096 };
	struct fixture f = begin(&options, SLOT_CAPTURE, 0);
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
	end(&f);
}

static void full_targets_go_on(void **state)
{
	struct harness_options options = { .targets = 1 };
	struct fixture f = begin(&options, SLOT_CAPTURE, 0);
	int fd = bpf_map__fd(f.h->skel->maps.targets);
	struct target target = {};
	struct slot_counters c;

	for (uint32_t i = 0; i < 1024; i++) {
		struct process_key key = { .tgid = 0x7f000000 + i };

		if (bpf_map_update_elem(fd, &key, &target, BPF_ANY))
			break;
	}
	c = sample_for(f.h, 0, 20);
	assert_int_equal(c.emitted, c.attempted);
	assert_true(c.emitted > 0);
	assert_true(harness_totals(f.h).targets_full > 0);
	assert_true(harness_errors(f.h, ERROR_TARGETS_FULL) > 0);
	end(&f);
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
		/* epoll reports what is there when it is asked, too: ask while the ring is empty.
		 */
		woken = poll(&p, 1, ms) > 0;
		stop_ticks(f->h);
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
	struct fixture f = begin(NULL, SLOT_CAPTURE, 0);

	assert_true(wakes(&f, 0)); /* the first tick of its process */
	assert_true(lets_sleep(&f, 0));
	assert_true(lets_sleep(&f, 1u << 30));
	assert_true(wakes(&f, 4096));
	assert_true(wakes(&f, 4096));
	end(&f);
}

/* An image may have gone before the next drain: its first tick in a capture wakes, and no other. */
static void wakes_for_a_new_image(void **state)
{
	struct fixture f = begin(NULL, SLOT_CAPTURE, 0);

	assert_true(wakes(&f, 0));
	assert_true(lets_sleep(&f, 0));
	harness_target_set(f.h, f.pid, 0); /* as exec leaves it */
	assert_true(wakes(&f, 0));
	assert_true(lets_sleep(&f, 0));
	harness_target_set(f.h, f.pid, TARGET_MAPPED);
	assert_true(lets_sleep(&f, 0));
	end(&f);
	f = begin(NULL, SLOT_RECORDER, 0);
	assert_true(lets_sleep(&f, 0));
	f.h->slots[SLOT].state = SLOT_CAPTURE;
	assert_true(wakes(&f, 0));
	end(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(misses_count_nothing),
		cmocka_unit_test(armed_zero_and_idle_take_nothing),
		cmocka_unit_test(hits_are_accounted_for),
		cmocka_unit_test(the_ending_have_no_user_stack),
		cmocka_unit_test(build_ids_until_mapped),
		cmocka_unit_test(recorder_takes_one_in_five),
		cmocka_unit_test(recorder_follows_the_divisor),
		cmocka_unit_test(by_process_needs_a_match),
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
