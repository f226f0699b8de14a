/* SPDX-License-Identifier: BSD-2-Clause */
/* When drains and scans are due: what comes and goes never puts them off. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include "consumer/io/schedule.h"
#include "shared/tools/clock.h"

#define IDLE_NS (600 * NSEC_PER_SEC)

struct fixture {
	struct loop *loop;
	struct schedule schedule;
	unsigned int drains, scans, settles;
	unsigned int more; /* settles that want another */
};

static void on_drain(void *context)
{
	((struct fixture *)context)->drains++;
}

static void on_settle(void *context)
{
	struct fixture *f = context;

	if (++f->settles <= f->more)
		schedule_settle_soon(&f->schedule);
}

static void on_scan(void *context)
{
	struct fixture *f = context;

	f->scans++;
	schedule_scanned(&f->schedule, clock_mono_ns());
}

static const struct schedule_calls calls = { on_drain, on_settle, on_scan };

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){ 0 };
	*state = &f;
	return loop_new(&f.loop) < 0 || schedule_init(&f.schedule, f.loop, &calls, &f) < 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	schedule_done(&f->schedule);
	loop_free(f->loop);
	return 0;
}

static void stop(void *context, uint32_t events)
{
	loop_stop(context);
}

static void run_loop(struct fixture *f, uint64_t ns)
{
	struct loop_source *timer;

	assert_int_equal(loop_timer(f->loop, stop, f->loop, &timer), 0);
	assert_int_equal(loop_timer_set(timer, ns, 0), 0);
	assert_int_equal(loop_run(f->loop), 0);
	loop_remove(timer);
}

/* Jobs of a second, each a watch: drain and scan are due when they were due after the first. */
static void test_watches_come_and_go(void **state)
{
	struct fixture *f = *state;
	struct schedule *s = &f->schedule;
	uint64_t drain_ns, scan_ns;

	schedule_idle_scan(s, IDLE_NS);
	schedule_scanned(s, clock_mono_ns());
	assert_true(s->scan_due_ns > clock_mono_ns() + IDLE_NS / 2);
	schedule_watches(s, 1);
	drain_ns = s->drain_due_ns;
	scan_ns = s->scan_due_ns;
	assert_in_range(drain_ns, 1, clock_mono_ns() + 5 * NSEC_PER_SEC);
	assert_in_range(scan_ns, 1, clock_mono_ns() + 35 * NSEC_PER_SEC);
	for (int i = 0; i < 100; i++) {
		schedule_watches(s, 0);
		schedule_watches(s, 1);
	}
	assert_int_equal(s->drain_due_ns, drain_ns);
	assert_int_equal(s->scan_due_ns, scan_ns);
	schedule_watches(s, 0);
	assert_int_equal(s->scan_due_ns, scan_ns);
}

/* A scan that is due soon while the last watch goes: the next idle scan follows it. */
static void test_idle_scan_follows(void **state)
{
	struct fixture *f = *state;
	struct schedule *s = &f->schedule;

	schedule_idle_scan(s, IDLE_NS);
	schedule_watches(s, 1);
	schedule_scanned(s, clock_mono_ns());
	schedule_scan_soon(s);
	schedule_watches(s, 0);
	for (int i = 0; i < 100 && !f->scans; i++)
		run_loop(f, 20 * NSEC_PER_MSEC);
	assert_int_equal(f->scans, 1);
	assert_true(s->scan_due_ns > clock_mono_ns() + SCHEDULE_SCAN_NS);
	/* And it is armed: brought near, it runs. */
	schedule_scan_soon(s);
	for (int i = 0; i < 100 && f->scans < 2; i++)
		run_loop(f, 20 * NSEC_PER_MSEC);
	assert_int_equal(f->scans, 2);
}

/* While nothing is watched and no rule asks for it, no scan is due after the last one. */
static void test_no_scan(void **state)
{
	struct fixture *f = *state;

	schedule_scanned(&f->schedule, clock_mono_ns());
	assert_int_equal(f->schedule.scan_due_ns, 0);
	schedule_scan_again(&f->schedule);
	assert_in_range(f->schedule.scan_due_ns, 1, clock_mono_ns() + SCHEDULE_SCAN_NS);
}

/* The drain that was due when the last watch went runs once, and then no more. */
static void test_last_drain(void **state)
{
	struct fixture *f = *state;
	struct schedule *s = &f->schedule;

	schedule_watches(s, 1);
	schedule_sessions(s, 1);
	schedule_sessions(s, 0);
	schedule_watches(s, 0);
	for (int i = 0; i < 100 && !f->drains; i++)
		run_loop(f, 20 * NSEC_PER_MSEC);
	assert_int_equal(f->drains, 1);
	assert_int_equal(s->drain_due_ns, 0);
	run_loop(f, 120 * NSEC_PER_MSEC);
	assert_int_equal(f->drains, 1);
}

/* What ran out of time is called again. */
static void test_settle_again(void **state)
{
	struct fixture *f = *state;

	f->more = 2;
	schedule_settle_soon(&f->schedule);
	for (int i = 0; i < 100 && f->settles < 3; i++)
		run_loop(f, 20 * NSEC_PER_MSEC);
	assert_int_equal(f->settles, 3);
}

/* A drain by some time: once, not before it is due, and not later for one that is due later. */
static void test_drain_by(void **state)
{
	struct fixture *f = *state;
	uint64_t now_ns = clock_mono_ns();

	schedule_drain_by(&f->schedule, now_ns + 40 * NSEC_PER_MSEC);
	schedule_drain_by(&f->schedule, now_ns + 10 * NSEC_PER_SEC);
	while (!f->drains)
		run_loop(f, 5 * NSEC_PER_MSEC);
	assert_in_range(clock_mono_ns() - now_ns, 40 * NSEC_PER_MSEC, 5 * NSEC_PER_SEC);
	assert_int_equal(f->drains, 1);
	assert_int_equal(f->schedule.drain_due_ns, 0);
	/* A time that is past: soon, and not at once. */
	schedule_drain_by(&f->schedule, 1);
	assert_true(f->schedule.drain_due_ns > clock_mono_ns());
	while (f->drains < 2)
		run_loop(f, 5 * NSEC_PER_MSEC);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

/* A minute after the last watch a scan is due, whatever scans run until then; no second one. */
static void test_aftermath(void **state)
{
	struct fixture *f = *state;
	struct schedule *s = &f->schedule;
	uint64_t now_ns = clock_mono_ns();

	schedule_idle_scan(s, IDLE_NS);
	schedule_watches(s, 1);
	schedule_watches(s, 0);
	schedule_scanned(s, now_ns);
	assert_in_range(s->scan_due_ns, now_ns + 59 * NSEC_PER_SEC, now_ns + 90 * NSEC_PER_SEC);
	schedule_repair_soon(s);
	assert_true(s->scan_due_ns < now_ns + 30 * NSEC_PER_SEC);
	schedule_scanned(s, now_ns);
	assert_true(s->scan_due_ns < now_ns + 90 * NSEC_PER_SEC);
	s->aftermath_ns = now_ns - 1;
	schedule_scanned(s, now_ns);
	assert_true(s->scan_due_ns >= now_ns + IDLE_NS);
}

/* Repairs come the less often the more a scan takes, but as often as other scans. */
static void test_repairs_by_cost(void **state)
{
	static const struct {
		uint64_t cpu_ns, apart_ns;
	} rows[] = {
		{ 0, SCHEDULE_REPAIR_NS },
		{ 100 * NSEC_PER_MSEC, SCHEDULE_REPAIR_NS },
		{ 500 * NSEC_PER_MSEC, 10 * NSEC_PER_SEC },
		{ 9 * NSEC_PER_SEC, SCHEDULE_SCAN_NS },
	};
	struct fixture *f = *state;
	struct schedule *s = &f->schedule;
	uint64_t now_ns = clock_mono_ns();

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		schedule_scanned(s, now_ns);
		schedule_scan_took(s, rows[i].cpu_ns);
		schedule_repair_soon(s);
		assert_int_equal(s->scan_due_ns, now_ns + rows[i].apart_ns);
	}
}

UNIT_TESTS(schedule)
{
	const struct CMUnitTest tests[] = {
		EACH(test_watches_come_and_go),
		EACH(test_aftermath),
		EACH(test_idle_scan_follows),
		EACH(test_no_scan),
		EACH(test_last_drain),
		EACH(test_settle_again),
		EACH(test_drain_by),
		EACH(test_repairs_by_cost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
