/* SPDX-License-Identifier: BSD-2-Clause */
/* When a cgroup counts as quiet, for services of many kinds, and beside a plain model of the same.
 */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <stdlib.h>

#include "consumer/conditions/quiet_series.h"
#include "shared/rules/rules.h"
#include "shared/tools/macro.h"

#define TENTH 10000 /* quiet_pct 10 */
#define STEP  5000  /* between drains */

/* A service as the agent follows it: one threshold, one reading each STEP. */
struct service {
	struct quiet_series series;
	uint64_t now_ms, cpu_us;
	uint32_t window_ms;
	struct quiet_window window;
	bool known, quiet;
	unsigned int falls; /* how often it fell quiet */
};

static struct service new_service(uint32_t window_ms)
{
	struct service s = { .now_ms = 1000000, .cpu_us = 77, .window_ms = window_ms };

	assert_true(quiet_series_add(&s.series, s.now_ms, s.cpu_us));
	quiet_series_settle(&s.series, 0);
	return s;
}

static void run_step(struct service *s, uint64_t step_ms, double percent)
{
	bool was = s->quiet;

	s->now_ms += step_ms;
	s->cpu_us += (uint64_t)((double)step_ms * 10 * percent);
	if (!quiet_series_add(&s->series, s->now_ms, s->cpu_us))
		return;
	s->known = quiet_series_window(&s->series, s->window_ms, &s->window);
	s->quiet = s->known && quiet_series_is_quiet(&s->series, &s->window, TENTH);
	s->falls += s->quiet && !was;
	if (quiet_series_settle(&s->series, s->quiet ? s->window.from_ms : 0))
		s->quiet = false;
}

/* So many seconds at so many percent of a CPU. */
static void run(struct service *s, unsigned int seconds, double percent)
{
	for (unsigned int ms = 0; ms < seconds * 1000; ms += STEP)
		run_step(s, STEP, percent);
}

static void test_learns(void **state)
{
	struct service s = new_service(5000);

	run(&s, 70, 30);
	assert_false(s.known);
	run(&s, 5, 30);
	assert_true(s.known);
	assert_int_equal(s.window.measured_ms, 5000);
	assert_int_equal(s.window.usual_us, 1500000);
	assert_int_equal(s.window.cpu_us, 1500000);
	assert_int_equal(s.falls, 0);
}

/* A stall that begins right behind a drain, and one in the middle: within a window and a drain. */
static void test_stall(void **state)
{
	struct service s = new_service(5000);

	run(&s, 120, 30);
	run(&s, 5, 0);
	assert_true(s.quiet);
	assert_int_equal(s.window.cpu_us, 0);
	assert_int_equal(s.window.usual_us, 1500000);
	s = new_service(5000);
	run(&s, 120, 30);
	run(&s, 5, 15);
	assert_false(s.quiet);
	run(&s, 5, 0);
	assert_true(s.quiet);
	/* A longer window takes longer. */
	s = new_service(10000);
	run(&s, 120, 30);
	run(&s, 5, 0);
	assert_false(s.quiet);
	run(&s, 5, 0);
	assert_true(s.quiet);
	assert_int_equal(s.window.measured_ms, 10000);
}

/* The stall began within the interval before the window: its CPU time shows how long before. */
static void test_began(void **state)
{
	struct service s = new_service(5000);

	run(&s, 120, 30);
	run(&s, 5, 30 * 0.4);
	run(&s, 5, 0);
	assert_true(s.quiet);
	assert_int_equal(s.window.measured_ms, 5000);
	assert_in_range(s.window.began_ms, 7900, 8100);
	s = new_service(5000);
	run(&s, 120, 30);
	run(&s, 5, 0);
	assert_in_range(s.window.began_ms, 5000, 5100);
}

/* How many stalls of that length are seen, of 50 that begin anywhere between two drains. */
static unsigned int count_seen(unsigned int stall_ms)
{
	unsigned int seen = 0;

	for (unsigned int offset_ms = 0; offset_ms < STEP; offset_ms += STEP / 50) {
		struct service s = new_service(5000);

		run(&s, 120, 30);
		for (unsigned int ms = 0; ms < 30000; ms += STEP) {
			unsigned int from = MAX(ms, offset_ms);
			unsigned int to = MIN(ms + STEP, offset_ms + stall_ms);

			run_step(&s, STEP, 30.0 * (STEP - (to > from ? to - from : 0)) / STEP);
		}
		seen += s.falls;
	}
	return seen;
}

static void test_short_stalls(void **state)
{
	assert_int_equal(count_seen(10000), 50);
	assert_in_range(count_seen(8000), 30, 40);
	assert_int_equal(count_seen(4400), 0);
}

static void test_not_so_quiet(void **state)
{
	struct service s = new_service(5000);

	run(&s, 120, 30);
	run(&s, 120, 15);
	run(&s, 120, 4);
	assert_int_equal(s.falls, 0);
	/* Of the usual, which has followed: a third of 4. */
	assert_in_range(s.window.usual_us, 500000, 900000);
}

/* Neither one that always is idle, nor one that becomes so by and by. */
static void test_idle(void **state)
{
	struct service s = new_service(5000);
	double percent = 30;

	run(&s, 120, 0.9);
	run(&s, 60, 0);
	assert_int_equal(s.falls, 0);
	assert_true(quiet_series_is_idle(&s.window));
	s = new_service(5000);
	run(&s, 120, percent);
	for (; percent > 0.01; percent *= 0.97)
		run(&s, 5, percent);
	run(&s, 600, 0);
	assert_int_equal(s.falls, 0);
}

/* A job that works ten seconds of each minute, one of two, and requests that come as they like. */
static void test_bursts(void **state)
{
	struct service s = new_service(5000);

	for (int i = 0; i < 60; i++) {
		run(&s, 10, 100);
		run(&s, 50, 0);
	}
	assert_int_equal(s.falls, 0);
	s = new_service(5000);
	for (int i = 0; i < 200; i++) {
		run(&s, 10, 100);
		run(&s, 10, 0.5);
	}
	assert_int_equal(s.falls, 0);
	s = new_service(5000);
	srandom(4711);
	for (int i = 0; i < 20000; i++) {
		unsigned int requests = 0;

		for (int k = 0; k < 400; k++)
			requests += random() % 100 < 5;
		run_step(&s, STEP, 0.1 * requests);
	}
	/* Twenty in a window, for a day and more. */
	assert_int_equal(s.falls, 0);
}

/* What is usual is the same after a stall as before it, and the next one is seen too. */
static void test_stall_is_not_usual(void **state)
{
	struct service s = new_service(5000);
	uint64_t usual_us;

	run(&s, 200, 30);
	usual_us = s.window.usual_us;
	for (unsigned int i = 1; i <= 5; i++) {
		run(&s, 5, 12);
		run(&s, 40, 0.1);
		assert_true(s.quiet);
		assert_int_equal(s.falls, i);
		run(&s, 60, 30);
		assert_false(s.quiet);
		assert_in_range(s.window.usual_us, usual_us * 93 / 100, usual_us);
	}
}

/* One that stays quiet has another usual time then, and is not reported again. */
static void test_new_usual(void **state)
{
	struct service s = new_service(5000);

	run(&s, 120, 30);
	run(&s, QUIET_MEMORY_MS / 1000 + 10, 2);
	assert_int_equal(s.falls, 1);
	assert_false(s.quiet);
	run(&s, 600, 2);
	assert_int_equal(s.falls, 1);
	assert_int_equal(s.window.usual_us, 100000);
	run(&s, 30, 0);
	assert_int_equal(s.falls, 2);
}

static void test_anew(void **state)
{
	struct service s = new_service(5000);

	run(&s, 120, 30);
	/* Fewer microseconds than before: another cgroup. */
	s.cpu_us = 0;
	run(&s, 60, 0);
	assert_false(s.known);
	assert_int_equal(s.falls, 0);
	run(&s, 120, 30);
	assert_true(s.known);
	quiet_series_reset(&s.series);
	run(&s, 30, 0);
	assert_false(s.known);
	/* The agent did not run for so long. */
	s = new_service(5000);
	run(&s, 120, 30);
	run_step(&s, QUIET_MEMORY_MS + 1, 0);
	assert_false(s.known);
	/* Too near to the last: passed over. */
	assert_false(quiet_series_add(&s.series, s.now_ms + QUIET_APART_MS - 1, s.cpu_us));
}

/* All readings, and of each interval behind one whether it counts as usual. No ring. */
struct model {
	struct quiet_reading all[2000];
	bool usual[2000];
	size_t n, decided;
	bool quiet;
	uint64_t quiet_ms;
};

/* The usual time, as running sums over the intervals that count; returns how many. */
static size_t sum_usual(const struct model *m, struct quiet_reading sums[])
{
	size_t n = 0;

	sums[n++] = (struct quiet_reading){ 0 };
	for (size_t i = 1; i < m->n; i++) {
		if (!m->usual[i])
			continue;
		sums[n] = (struct quiet_reading){
			sums[n - 1].time_ms + m->all[i].time_ms - m->all[i - 1].time_ms,
			sums[n - 1].cpu_us + m->all[i].cpu_us - m->all[i - 1].cpu_us
		};
		n++;
	}
	return n;
}

/* Whether it is quiet now, by the words of the header; *ret_from is where the window begins. */
static bool model_is_quiet(const struct model *m, uint32_t window_ms, uint64_t *ret_from)
{
	static struct quiet_reading sums[2001];
	size_t n = sum_usual(m, sums), first = n - 1, from = m->n;
	const struct quiet_reading now = m->all[m->n - 1];
	uint64_t measured, cpu, span, usual;

	while (first > 0 && n - first < QUIET_STEADY &&
	       sums[n - 1].time_ms - sums[first - 1].time_ms <= QUIET_MEMORY_MS)
		first--;
	for (size_t i = m->n - 1; i-- > 0 && from == m->n;)
		if ((now.time_ms - m->all[i].time_ms) * 10 >= window_ms * 9ULL)
			from = i;
	span = sums[n - 1].time_ms - sums[first].time_ms;
	if (from == m->n || span < QUIET_LEARN_MS)
		return false;
	measured = now.time_ms - m->all[from].time_ms;
	cpu = now.cpu_us - m->all[from].cpu_us;
	usual = (sums[n - 1].cpu_us - sums[first].cpu_us) * measured / span;
	*ret_from = m->all[from].time_ms;
	if (usual * 100 < measured * 1000 * QUIET_IDLE_PCT || cpu * 10 >= usual)
		return false;
	for (size_t to = first; to < n; to++) {
		uint64_t least = measured - measured / 10;

		for (size_t i = to + 1; i-- > first;) {
			uint64_t long_ms = sums[to].time_ms - sums[i].time_ms;
			uint64_t had_us = sums[to].cpu_us - sums[i].cpu_us;

			if (long_ms < least)
				continue;
			if (!had_us || had_us * measured < 2 * cpu * long_ms)
				return false;
			break;
		}
	}
	return true;
}

static void decide(struct model *m, uint64_t until_ms, bool usual)
{
	for (; m->decided < m->n && m->all[m->decided].time_ms <= until_ms; m->decided++)
		m->usual[m->decided] = usual;
}

static void model_begin(struct model *m, struct quiet_reading reading)
{
	*m = (struct model){ .all = { reading }, .n = 1, .decided = 1 };
}

/* One reading; returns whether the cgroup is quiet. */
static bool model_step(struct model *m, struct quiet_reading reading, uint32_t window_ms)
{
	uint64_t from = 0;
	bool quiet;

	m->all[m->n++] = reading;
	quiet = model_is_quiet(m, window_ms, &from);
	if (quiet && !m->quiet) {
		decide(m, from, true);
		m->quiet_ms = from;
	} else if (!quiet && m->quiet) {
		decide(m, reading.time_ms, false);
	} else if (!quiet) {
		decide(m, reading.time_ms - RULE_QUIET_WINDOW_MAX_MS, true);
	}
	m->quiet = quiet;
	if (quiet && reading.time_ms - m->quiet_ms >= QUIET_MEMORY_MS) {
		model_begin(m, reading);
		return false;
	}
	return quiet;
}

/* Random services with stalls, read at random times. */
static void test_beside_model(void **state)
{
	static struct model m;
	unsigned int quiet = 0, falls = 0;

	for (unsigned int seed = 1; seed <= 300; seed++) {
		struct service s = new_service(5000 + seed % 3 * 2500);
		double percent = 20, usual;

		srandom(seed);
		usual = 1 + (double)(random() % 200);
		model_begin(&m, (struct quiet_reading){ s.now_ms, s.cpu_us });
		for (int i = 0; i < 400; i++) {
			uint64_t step_ms = QUIET_APART_MS + (uint64_t)random() % 8000;

			if (random() % 20 == 0)
				percent = random() % 3 ? usual
						       : usual * (double)(random() % 120) / 1000;
			run_step(&s, step_ms, percent * (0.9 + (double)(random() % 200) / 1000));
			if (model_step(&m, (struct quiet_reading){ s.now_ms, s.cpu_us },
				       s.window_ms) != s.quiet)
				fail_msg("seed %u, reading %d: %d", seed, i, s.quiet);
			quiet += s.quiet;
		}
		falls += s.falls;
	}
	/* The series met both. */
	assert_true(quiet > 1000 && falls > 200 && quiet < 60000);
}

UNIT_TESTS(quiet_series)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_learns),	     cmocka_unit_test(test_stall),
		cmocka_unit_test(test_began),	     cmocka_unit_test(test_short_stalls),
		cmocka_unit_test(test_not_so_quiet), cmocka_unit_test(test_idle),
		cmocka_unit_test(test_bursts),	     cmocka_unit_test(test_stall_is_not_usual),
		cmocka_unit_test(test_new_usual),    cmocka_unit_test(test_anew),
		cmocka_unit_test(test_beside_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
