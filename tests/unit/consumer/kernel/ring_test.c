/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring against a producer in memory that writes as kernel/bpf/ringbuf.c does. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "consumer/kernel/ring.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define SIZE 4096u
/* A ring of which a record may be longer than RING_RECORD_MAX. */
#define LARGE (256u << 10)

struct fake {
	struct ring ring;
	unsigned long consumer, producer;
	uint8_t *data; /* exactly as long as the ring: the sanitizer sees each byte beyond */
	/* what arrived */
	uint64_t sum;
	size_t records, last_bytes;
	const uint8_t *last;
	void (*during)(struct fake *f);
};

static void fake_init(struct fake *f, size_t size, unsigned long start)
{
	*f = (struct fake){ .consumer = start, .producer = start, .data = malloc(size) };
	assert_non_null(f->data);
	memset(f->data, 0xee, size);
	f->ring = (struct ring){
		.fd = -1,
		.size = size,
		.consumer_pos = &f->consumer,
		.producer_pos = &f->producer,
		.data = f->data,
	};
}

static void fake_done(struct fake *f)
{
	free(f->ring.bounce);
	free(f->data);
}

static uint32_t *header(struct fake *f, unsigned long pos)
{
	return (uint32_t *)(f->data + (pos & (f->ring.size - 1)));
}

/* Writes a record with bytes that count up from `first`; returns its position. */
static unsigned long produce(struct fake *f, size_t bytes, uint8_t first, uint32_t bits)
{
	unsigned long pos = f->producer;

	for (size_t i = 0; i < bytes; i++)
		f->data[(pos + BPF_RINGBUF_HDR_SZ + i) & (f->ring.size - 1)] = (uint8_t)(first + i);
	*header(f, pos) = (uint32_t)bytes | bits;
	__atomic_store_n(&f->producer, pos + ALIGN_UP(bytes + BPF_RINGBUF_HDR_SZ, 8),
			 __ATOMIC_RELEASE);
	return pos;
}

static void take(void *context, const void *record, size_t bytes)
{
	struct fake *f = context;
	const uint8_t *p = record;

	assert_int_equal((uintptr_t)record % 8, 0);
	for (size_t i = 1; i < bytes; i++)
		assert_int_equal(p[i], (uint8_t)(p[0] + i));
	f->sum += bytes ? p[0] : 0;
	f->records++;
	f->last_bytes = bytes;
	if (f->during)
		f->during(f);
}

static void test_empty(void **state)
{
	struct fake f;

	fake_init(&f, SIZE, 0);
	assert_int_equal(ring_used(&f.ring), 0);
	assert_int_equal(ring_drain(&f.ring, RING_ENDLESSLY, take, &f), 0);
	assert_int_equal(f.consumer, 0);
	produce(&f, 0, 0, 0);
	assert_int_equal(ring_used(&f.ring), 8);
	assert_int_equal(ring_drain(&f.ring, RING_ENDLESSLY, take, &f), 1);
	assert_int_equal(f.last_bytes, 0);
	fake_done(&f);
}

static void take_slowly(void *context, const void *record, size_t bytes)
{
	take(context, record, bytes);
	usleep(20000);
}

/* A drain ends when its time is over, reports it, and the next one goes on after it. */
static void test_budget(void **state)
{
	struct fake f;

	fake_init(&f, SIZE, 0);
	for (uint8_t i = 0; i < 5; i++)
		produce(&f, 16, i, 0);
	assert_int_equal(ring_drain(&f.ring, clock_mono_ns() + 5 * NSEC_PER_MSEC, take_slowly, &f),
			 1);
	assert_true(f.ring.cut);
	assert_true(ring_used(&f.ring) > 0);
	assert_int_equal(ring_drain(&f.ring, 0, take, &f), 1);
	assert_true(f.ring.cut);
	assert_int_equal(ring_drain(&f.ring, RING_ENDLESSLY, take, &f), 3);
	assert_false(f.ring.cut);
	assert_int_equal(f.sum, 0 + 1 + 2 + 3 + 4);
	fake_done(&f);
}

static void produce_more(struct fake *f)
{
	if (f->records < 1000)
		produce(f, 16, 1, 0);
}

/* Nor does it last as long as records come: each record here brings another. */
static void test_storm_ends_a_drain(void **state)
{
	struct fake f;

	fake_init(&f, SIZE, 0);
	f.during = produce_more;
	produce(&f, 16, 1, 0);
	produce(&f, 16, 1, 0);
	assert_in_range(ring_drain(&f.ring, 0, take, &f), 1, 2);
	assert_true(f.ring.cut);
	fake_done(&f);
}

/* Every offset of the ring is once the place where a record wraps. */
static void test_wrap(void **state)
{
	for (unsigned long start = 0; start < SIZE; start += 8) {
		struct fake f;

		fake_init(&f, SIZE, 7 * SIZE + start);
		produce(&f, 1001, 3, 0);
		produce(&f, 40, 5, 0);
		assert_int_equal(ring_drain(&f.ring, RING_ENDLESSLY, take, &f), 2);
		assert_int_equal(f.sum, 8);
		assert_int_equal(f.consumer, f.producer);
		assert_int_equal(f.ring.bad, 0);
		assert_int_equal(ring_used(&f.ring), 0);
		fake_done(&f);
	}
}

static void test_busy_stops(void **state)
{
	struct fake f;
	unsigned long busy;

	fake_init(&f, SIZE, 0);
	produce(&f, 10, 1, 0);
	busy = produce(&f, 20, 2, BPF_RINGBUF_BUSY_BIT);
	produce(&f, 30, 4, 0);
	assert_int_equal(ring_drain(&f.ring, RING_ENDLESSLY, take, &f), 1);
	assert_int_equal(f.consumer, busy);
	assert_int_equal(ring_drain(&f.ring, RING_ENDLESSLY, take, &f), 0);
	assert_int_equal(f.consumer, busy);
	*header(&f, busy) &= ~BPF_RINGBUF_BUSY_BIT;
	assert_int_equal(ring_drain(&f.ring, RING_ENDLESSLY, take, &f), 2);
	assert_int_equal(f.sum, 7);
	assert_int_equal(f.ring.records, 3);
	fake_done(&f);
}

static void test_discard(void **state)
{
	struct fake f;

	fake_init(&f, SIZE, 0);
	produce(&f, 16, 1, BPF_RINGBUF_DISCARD_BIT);
	produce(&f, 16, 2, 0);
	produce(&f, 100, 4, BPF_RINGBUF_DISCARD_BIT);
	assert_int_equal(ring_drain(&f.ring, RING_ENDLESSLY, take, &f), 1);
	assert_int_equal(f.sum, 2);
	assert_int_equal(f.consumer, f.producer);
	fake_done(&f);
}

static void produce_one_more(struct fake *f)
{
	f->during = NULL;
	produce(f, 24, 100, 0);
}

/* A record committed after the first look is found by the second: no wake-up would come for it. */
static void test_two_passes(void **state)
{
	struct fake f;

	fake_init(&f, SIZE, 0);
	produce(&f, 16, 1, 0);
	f.during = produce_one_more;
	assert_int_equal(ring_drain(&f.ring, RING_ENDLESSLY, take, &f), 2);
	assert_int_equal(f.sum, 101);
	assert_int_equal(f.consumer, f.producer);
	fake_done(&f);
}

static void commit_first(struct fake *f)
{
	f->during = NULL;
	*header(f, 24) &= ~BPF_RINGBUF_BUSY_BIT;
}

/* The one before it was still being written when it was looked at, and is committed meanwhile. */
static void test_committed_late(void **state)
{
	struct fake f;

	fake_init(&f, SIZE, 0);
	produce(&f, 16, 1, 0);
	assert_int_equal(produce(&f, 16, 2, BPF_RINGBUF_BUSY_BIT), 24);
	f.during = commit_first;
	assert_int_equal(ring_drain(&f.ring, RING_ENDLESSLY, take, &f), 2);
	assert_int_equal(f.consumer, f.producer);
	fake_done(&f);
}

static void check_released(struct fake *f)
{
	/* Never more than a quarter of the ring is kept from the producer, but for one record. */
	assert_true(f->producer - f->consumer <= f->ring.size);
	if (f->records == 30)
		assert_true(f->consumer > 0);
}

static void test_release(void **state)
{
	struct fake f;

	fake_init(&f, SIZE, 0);
	f.during = check_released;
	for (int i = 0; i < 31; i++)
		produce(&f, 120, (uint8_t)i, 0);
	assert_int_equal(ring_drain(&f.ring, RING_ENDLESSLY, take, &f), 31);
	fake_done(&f);
}

/* Lengths that cannot be: the ring is skipped to its end, counted, and goes on. */
static void test_lies(void **state)
{
	static const uint32_t lies[] = { 57, 64, 4089, 4096, 5000, 65536, 65537, 0x3fffffff };

	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		struct fake f;
		unsigned long pos;

		fake_init(&f, SIZE, 3 * SIZE + 4000);
		produce(&f, 16, 1, 0);
		pos = produce(&f, 48, 2, 0);
		*header(&f, pos) = lies[i];
		assert_int_equal(ring_drain(&f.ring, RING_ENDLESSLY, take, &f), 1);
		assert_int_equal(f.ring.bad, 1);
		assert_int_equal(f.consumer, f.producer);
		produce(&f, 8, 4, 0);
		assert_int_equal(ring_drain(&f.ring, RING_ENDLESSLY, take, &f), 1);
		assert_int_equal(f.sum, 5);
		fake_done(&f);
	}
}

/* A length within the wall and within a lying position, yet longer than the ring. */
static void test_lying_position(void **state)
{
	struct fake f;

	fake_init(&f, SIZE, 0);
	*header(&f, 0) = 3 * SIZE;
	f.producer = 100 * SIZE;
	assert_int_equal(ring_drain(&f.ring, RING_ENDLESSLY, take, &f), 0);
	assert_int_equal(f.ring.bad, 1);
	assert_int_equal(f.consumer, f.producer);
	/* Behind us: the consumer goes to the producer's position. */
	f.producer = 50 * SIZE;
	assert_int_equal(ring_drain(&f.ring, RING_ENDLESSLY, take, &f), 0);
	assert_int_equal(f.ring.bad, 2);
	assert_int_equal(f.consumer, f.producer);
	fake_done(&f);
}

static void test_record_wall(void **state)
{
	struct fake f;

	fake_init(&f, LARGE, 0);
	produce(&f, RING_RECORD_MAX, 1, 0);
	assert_int_equal(ring_drain(&f.ring, RING_ENDLESSLY, take, &f), 1);
	produce(&f, RING_RECORD_MAX + 1, 1, 0);
	assert_int_equal(ring_drain(&f.ring, RING_ENDLESSLY, take, &f), 0);
	assert_int_equal(f.ring.bad, 1);
	fake_done(&f);
}

static void test_random(void **state)
{
	uint64_t seed = 5, sum = 0, wanted = 0;
	struct fake f;

	fake_init(&f, SIZE, 123 * SIZE + 8);
	for (int i = 0; i < 20000; i++) {
		size_t bytes = 1 + next_random(&seed) % 700;
		bool discard = next_random(&seed) % 8 == 0;

		if (SIZE - ring_used(&f.ring) < ALIGN_UP(bytes + BPF_RINGBUF_HDR_SZ, 8))
			ring_drain(&f.ring, RING_ENDLESSLY, take, &f);
		produce(&f, bytes, (uint8_t)i, discard ? BPF_RINGBUF_DISCARD_BIT : 0);
		sum += discard ? 0 : (uint8_t)i;
		wanted += !discard;
	}
	ring_drain(&f.ring, RING_ENDLESSLY, take, &f);
	assert_int_equal(f.sum, sum);
	assert_int_equal(f.ring.records, wanted);
	assert_int_equal(f.ring.bad, 0);
	fake_done(&f);
}

/* The layout of the mapping: one page each for the positions, the data once. */
static void test_open(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = memfd_create("ring", MFD_CLOEXEC);
	struct fake f = {};
	uint8_t *memory;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)(2 * page + SIZE)), 0);
	memory = mmap(NULL, 2 * page + SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	*(uint32_t *)(memory + 2 * page) = 4;
	memcpy(memory + 2 * page + 8, "\1\2\3\4", 4);
	*(unsigned long *)(memory + page) = 16;
	assert_int_equal(ring_open(fd, SIZE, &f.ring), 0);
	assert_int_equal(ring_used(&f.ring), 16);
	assert_int_equal(ring_drain(&f.ring, RING_ENDLESSLY, take, &f), 1);
	assert_int_equal(*(unsigned long *)memory, 16);
	ring_done(&f.ring);
	assert_int_equal(f.ring.fd, -1);
	munmap(memory, 2 * page + SIZE);
	assert_true(ring_open(-1, SIZE, &f.ring) < 0);
	ring_done(&f.ring);
}

UNIT_TESTS(ring)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_budget),	       cmocka_unit_test(test_storm_ends_a_drain),
		cmocka_unit_test(test_empty),	       cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_busy_stops),     cmocka_unit_test(test_discard),
		cmocka_unit_test(test_two_passes),     cmocka_unit_test(test_committed_late),
		cmocka_unit_test(test_release),	       cmocka_unit_test(test_lies),
		cmocka_unit_test(test_lying_position), cmocka_unit_test(test_record_wall),
		cmocka_unit_test(test_random),	       cmocka_unit_test(test_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
