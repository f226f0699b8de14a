/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unit_testing.h"

#include "consumer/sampling/recorder.h"
#include "shared/tools/macro.h"

/* Of one chunk; what the struct in front of its data needs comes on top. */
#define CHUNK (64u << 10)

struct seen {
	size_t count;
	uint64_t first_ns, last_ns;
	uint32_t slot, epoch;
	uint16_t frames;
	bool ordered;
};

static void see(void *context, const struct stack_sample *h)
{
	struct seen *s = context;

	if (!s->count)
		s->first_ns = h->time_ns;
	s->ordered = h->time_ns >= s->last_ns && (s->ordered || !s->count);
	s->last_ns = h->time_ns;
	s->slot = h->slot;
	s->epoch = h->epoch;
	s->frames = h->user_frames;
	for (uint16_t i = 0; i < h->user_frames; i++)
		assert_int_equal(h->frames[i].offset, 0x1000u + i);
	s->count++;
}

static struct seen each(const struct recorder *r, uint32_t slot, uint32_t epoch, uint64_t from_ns)
{
	struct seen s = {};

	recorder_each(r, slot, epoch, from_ns, see, &s);
	return s;
}

static void add(struct recorder *r, uint64_t time_ns, uint32_t slot, uint32_t epoch,
		uint16_t frames)
{
	struct stack_sample *h = new_stack_sample(0, frames, NULL);

	h->time_ns = time_ns;
	h->slot = slot;
	h->epoch = epoch;
	recorder_add(r, h);
	free(h);
}

static void test_filters(void **state)
{
	struct recorder r;
	struct seen s;

	recorder_init(&r, 1u << 20);
	assert_int_equal(each(&r, 1, 1, 0).count, 0);
	for (uint64_t t = 1; t <= 100; t++)
		add(&r, t, t % 2, t <= 50 ? 1 : 2, (uint16_t)(t % 60));
	assert_int_equal(each(&r, 0, 1, 0).count, 25);
	assert_int_equal(each(&r, 1, 2, 0).count, 25);
	assert_int_equal(each(&r, 1, 3, 0).count, 0);
	assert_int_equal(each(&r, 2, 1, 0).count, 0);
	s = each(&r, 0, 2, 90);
	assert_int_equal(s.count, 6);
	assert_int_equal(s.first_ns, 90);
	assert_int_equal(s.last_ns, 100);
	assert_true(s.ordered);
	assert_int_equal(s.frames, 40);
	recorder_done(&r);
	assert_int_equal(r.bytes, 0);
}

static void test_bound(void **state)
{
	const size_t bound = 4 * CHUNK + 4096;
	struct recorder r;
	struct seen s;

	recorder_init(&r, bound);
	for (uint64_t t = 1; t <= 20000; t++) {
		add(&r, t, 0, 1, (uint16_t)(t % STACK_FRAMES));
		assert_true(r.bytes <= bound);
	}
	s = each(&r, 0, 1, 0);
	assert_int_equal(s.count + r.evicted, 20000);
	assert_true(r.evicted > 0);
	assert_true(s.count > 0);
	assert_true(s.ordered);
	assert_int_equal(s.last_ns, 20000);
	assert_int_equal(s.first_ns, r.evicted + 1);
	assert_int_equal(r.evicted_ns, r.evicted);
	recorder_done(&r);
}

/* A bound below one chunk still holds one: the newest samples are always there. */
static void test_bound_tiny(void **state)
{
	struct recorder r;

	recorder_init(&r, 1);
	for (uint64_t t = 1; t <= 3000; t++)
		add(&r, t, 0, 1, 100);
	assert_int_equal(each(&r, 0, 1, 0).count + r.evicted, 3000);
	assert_int_equal(each(&r, 0, 1, 3000).count, 1);
	assert_true(r.bytes < 2 * CHUNK);
	recorder_done(&r);
}

static void test_longest(void **state)
{
	struct stack_sample *h = new_stack_sample(STACK_FRAMES, STACK_FRAMES, NULL);
	struct recorder r;

	recorder_init(&r, 1u << 20);
	for (int i = 0; i < 100; i++)
		recorder_add(&r, h);
	assert_int_equal(r.evicted, 0);
	recorder_done(&r);
	free(h);
}

static void test_expire(void **state)
{
	struct recorder r;

	recorder_init(&r, 16u << 20);
	for (uint64_t t = 1; t <= 5000; t++)
		add(&r, t, 0, 1, 50);
	recorder_expire(&r, 1);
	assert_int_equal(each(&r, 0, 1, 0).count, 5000);
	recorder_expire(&r, 2500);
	/*
	 * Whole chunks go, and none with samples that are still needed; nothing counts as evicted.
	 */
	assert_int_equal(each(&r, 0, 1, 2500).count, 2501);
	assert_true(each(&r, 0, 1, 0).count < 2600);
	assert_int_equal(r.evicted, 0);
	assert_int_equal(r.evicted_ns, 0);
	recorder_expire(&r, 5001);
	assert_int_equal(r.bytes, 0);
	assert_null(r.oldest);
	assert_null(r.newest);
	add(&r, 6000, 0, 1, 1);
	assert_int_equal(each(&r, 0, 1, 0).count, 1);
	recorder_done(&r);
}

/* The samples of two CPUs interleave: the chunk lives as long as its latest. */
static void test_expire_interleaved(void **state)
{
	struct recorder r;

	recorder_init(&r, 1u << 20);
	add(&r, 900, 0, 1, 1);
	add(&r, 100, 0, 1, 1);
	recorder_expire(&r, 500);
	assert_int_equal(each(&r, 0, 1, 0).count, 2);
	recorder_expire(&r, 901);
	assert_int_equal(r.bytes, 0);
	recorder_done(&r);
}

#define CPUS	  512u
#define A_SECOND  20u /* of the recorder, on each CPU */
#define TICK_NS	  (NSEC_PER_SEC / A_SECOND)
#define SECONDS	  40u
#define KEEP_S	  31u
#define SLOTS	  64u
#define MAX_BYTES (16u << 20)

/*
 * The default memory on a machine of 512 CPUs, all of them sampled, with stacks of 20 frames: less
 * than the most of any rule fits. The bound holds, each sample is kept or counted as evicted, and
 * the kept ones are the newest, in order, without a gap.
 */
static void test_many_cpus(void **state)
{
	uint64_t added = 0, now_ns = 0;
	size_t kept = 0;
	struct recorder r;

	recorder_init(&r, MAX_BYTES);
	for (uint32_t tick = 0; tick < SECONDS * A_SECOND; tick++) {
		now_ns += TICK_NS;
		for (uint32_t cpu = 0; cpu < CPUS; cpu++, added++)
			add(&r, now_ns + cpu, cpu % SLOTS, 1, 20);
		assert_true(r.bytes <= MAX_BYTES);
		if (now_ns > KEEP_S * NSEC_PER_SEC)
			recorder_expire(&r, now_ns - KEEP_S * NSEC_PER_SEC);
	}
	for (uint32_t slot = 0; slot < SLOTS; slot++) {
		struct seen s = each(&r, slot, 1, r.evicted_ns + CPUS);

		assert_true(s.ordered);
		assert_true(s.last_ns >= now_ns);
		assert_int_equal(s.count, (now_ns - r.evicted_ns / TICK_NS * TICK_NS) / TICK_NS *
						  (CPUS / SLOTS));
		kept += each(&r, slot, 1, 0).count;
	}
	assert_true(r.evicted > 0);
	assert_int_equal(kept + r.evicted, added);
	recorder_done(&r);
}

UNIT_TESTS(recorder)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_filters),	   cmocka_unit_test(test_bound),
		cmocka_unit_test(test_bound_tiny), cmocka_unit_test(test_longest),
		cmocka_unit_test(test_expire),	   cmocka_unit_test(test_expire_interleaved),
		cmocka_unit_test(test_many_cpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
