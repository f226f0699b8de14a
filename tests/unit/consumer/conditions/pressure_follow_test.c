/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/pressure_testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shared/tools/clock.h"

/* From here on the watch reads the pressure of that resource from a file of ours. */
static void pretend_of(struct watch *w, enum resource resource, uint64_t total_us)
{
	struct followed_file *p = &pressure_testing_of(w)->file[resource];
	char text[256];
	int n = snprintf(text, sizeof(text),
			 "some avg10=0.00 avg60=0.00 avg300=0.00 total=%llu\n"
			 "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
			 (unsigned long long)total_us);
	int fd = memfd_create("pressure", MFD_CLOEXEC);

	assert_int_equal(write(fd, text, (size_t)n), n);
	close(p->fd);
	p->fd = fd;
}

static void pretend(struct watch *w, uint64_t total_us)
{
	pretend_of(w, RESOURCE_CPU, total_us);
}

/* The watch read this total so long ago, and nothing since. */
static void had_read_of(struct watch *w, enum resource resource, uint64_t ago_ns, uint64_t total_us)
{
	struct psi_history *h = &pressure_testing_of(w)->file[resource].history;
	struct psi psi = { .some.total_us = total_us, .has_full = true };

	psi_history_clear(h);
	psi_history_add(h, clock_mono_ns() - ago_ns, &psi);
}

static void had_read(struct watch *w, uint64_t ago_ns, uint64_t total_us)
{
	had_read_of(w, RESOURCE_CPU, ago_ns, total_us);
}

/* The totals decide whether a notice of the kernel starts a session. */
static void test_notice(void **state)
{
	static const char *const when[] = { CPU(200, 2000) };
	_cleanup_json_ json_object *line = NULL;
	struct watch *w;

	if (!fake)
		skip();
	w = pressure_testing_watch(when, 1);
	had_read(w, 3 * NSEC_PER_SEC, 500000);
	pretend(w, 699999);
	pressure_follow_notice(&fake->a.pressure, pressure_testing_of(w)->thresholds, false);
	assert_int_equal(fake->a.pressure.notices, 1);
	assert_int_equal(fake->a.pressure.false_events, 1);
	assert_int_equal(fake_count(fake, "pressure"), 0);
	had_read(w, 3 * NSEC_PER_SEC, 500000);
	pretend(w, 700000);
	pressure_follow_notice(&fake->a.pressure, pressure_testing_of(w)->thresholds, false);
	assert_int_equal(fake->a.pressure.crossings.noticed, 1);
	assert_int_equal(fake_count(fake, "session.start"), 1);
	line = fake_last(fake, "pressure");
	assert_string_equal(fake_text(line, "by"), "trigger");
	assert_string_equal(fake_text(line, "stall_ms"), "200");
	assert_in_range(json_object_get_int(json_object_object_get(line, "measured_ms")), 3000,
			3500);
}

/* The kernel reported it too early, and is silent for a window: the readings until then find it. */
static void test_early_notice(void **state)
{
	static const char *const when[] = { CPU(200, 2000) };
	_cleanup_json_ json_object *line = NULL;
	struct watch *w;

	if (!fake)
		skip();
	w = pressure_testing_watch(when, 1);
	had_read(w, 3 * NSEC_PER_SEC, 500000);
	pretend(w, 510000);
	pressure_follow_notice(&fake->a.pressure, pressure_testing_of(w)->thresholds, false);
	assert_int_equal(fake->a.pressure.false_events, 1);
	pretend(w, 699999);
	pressure_testing_loop(500 * NSEC_PER_MSEC);
	assert_int_equal(fake_count(fake, "pressure"), 0);
	pretend(w, 700000);
	/* A look finds it, and the next one that nothing is left to be read: late on a busy
	 * machine. */
	for (int i = 0; i < 10 && fake->a.pressure.look_every_ns; i++)
		pressure_testing_loop(500 * NSEC_PER_MSEC);
	assert_int_equal(fake->a.pressure.look_every_ns, 0);
	line = fake_last(fake, "pressure");
	assert_string_equal(fake_text(line, "by"), "reading");
	assert_string_equal(fake_text(line, "stall_ms"), "200");
	/* Not for longer than the window. */
	pressure_testing_of(w)->thresholds->crossed.time_ns -= 2 * NSEC_PER_SEC;
	pressure_follow_notice(&fake->a.pressure, pressure_testing_of(w)->thresholds, false);
	assert_int_equal(fake->a.pressure.false_events, 2);
	assert_true(fake->a.pressure.look_every_ns > 0);
	pressure_testing_loop(2500 * NSEC_PER_MSEC);
	assert_int_equal(fake->a.pressure.look_every_ns, 0);
	assert_int_equal(fake_count(fake, "pressure"), 1);
}

/* The readings between triggers are far apart: the stall of one crossing is no part of the next. */
static void test_stall_counts_once(void **state)
{
	static const char *const when[] = { CPU(200, 2000) };
	struct watch *w;

	if (!fake)
		skip();
	w = pressure_testing_watch(when, 1);
	had_read(w, 3 * NSEC_PER_SEC, 500000);
	pretend(w, 700000);
	pressure_follow_notice(&fake->a.pressure, pressure_testing_of(w)->thresholds, false);
	assert_int_equal(fake->a.pressure.crossings.noticed, 1);
	pressure_testing_of(w)->thresholds->crossed.time_ns -= 2 * NSEC_PER_SEC;
	pretend(w, 899999);
	pressure_follow_notice(&fake->a.pressure, pressure_testing_of(w)->thresholds, false);
	assert_int_equal(fake->a.pressure.crossings.noticed, 1);
	assert_int_equal(fake->a.pressure.false_events, 1);
	pretend(w, 900000);
	pressure_follow_notice(&fake->a.pressure, pressure_testing_of(w)->thresholds, false);
	assert_int_equal(fake->a.pressure.crossings.noticed, 2);
}

/* A notice without the reading it would be compared with is none that can be believed. */
static void test_unreadable_at_notice(void **state)
{
	static const char *const when[] = { CPU(200, 2000) };
	struct watch *w;

	if (!fake)
		skip();
	w = pressure_testing_watch(when, 1);
	had_read(w, 3 * NSEC_PER_SEC, 0);
	close(pressure_testing_of(w)->file[RESOURCE_CPU].fd);
	pressure_testing_of(w)->file[RESOURCE_CPU].fd = memfd_create("empty", MFD_CLOEXEC);
	pressure_follow_notice(&fake->a.pressure, pressure_testing_of(w)->thresholds, false);
	assert_int_equal(fake->a.pressure.false_events, 1);
	assert_int_equal(opener->set, 1);
	assert_int_equal(fake_count(fake, "pressure"), 0);
}

/* The file went away under the trigger: no crossing, and the scan goes on. */
static void test_gone(void **state)
{
	static const char *const when[] = { CPU(200, 2000) };
	struct watch *w;

	if (!fake)
		skip();
	w = pressure_testing_watch(when, 1);
	fake_cgroup_remove(&group);
	pressure_testing_loop(50 * NSEC_PER_MSEC);
	assert_int_equal(fake->a.pressure.gone, 1);
	assert_int_equal(opener->set, 0);
	assert_int_equal(fake->a.pressure.notices, 0);
	assert_int_equal(pressure_testing_only(w)->way, THRESHOLD_SCAN);
	assert_string_equal(pressure_testing_only(w)->reason, psi_trigger_refusal(-ENODEV).reason);
	assert_int_equal(fake_count(fake, "pressure"), 0);
}

static void switch_pressure(const char *word)
{
	char file[4300];
	int fd;

	snprintf(file, sizeof(file), "%s/cgroup.pressure", group.directory);
	fd = open(file, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		skip(); /* before Linux 6.1 */
	assert_int_equal(write(fd, word, 1), 1);
	close(fd);
}

/*
 * The cgroup lives, and its pressure is switched off, then on: both are noticed, and it is reported
 * once.
 */
static void test_switched_off(void **state)
{
	static const char *const when[] = { CPU(200, 2000) };
	_cleanup_json_ json_object *line = NULL;
	struct followed_file *file;
	struct watch *w;
	int before;

	if (!fake)
		skip();
	w = pressure_testing_watch(when, 1);
	file = &pressure_testing_of(w)->file[RESOURCE_CPU];
	switch_pressure("0");
	pressure_testing_loop(50 * NSEC_PER_MSEC);
	pressure_testing_drained();
	file->failed = true; /* as the scan finds it, when it is awake */
	pressure_testing_drained();
	assert_int_equal(file->fd, -1);
	assert_true(file->off);
	line = fake_last(fake, "error");
	assert_string_equal(fake_text(line, "code"), "pressure_unreadable");
	assert_non_null(strstr(fake_text(line, "message"), "switched off"));
	fake->a.pressure.looked_ns = 0;
	pressure_testing_drained();
	assert_int_equal(file->fd, -1);
	assert_int_equal(fake_count(fake, "error"), 1);
	before = opened;
	switch_pressure("1");
	fake->a.pressure.looked_ns = 0;
	pressure_testing_drained();
	assert_true(file->fd >= 0);
	assert_false(file->off);
	pressure_testing_loop(50 * NSEC_PER_MSEC);
	pressure_testing_drained();
	assert_true(opened > before); /* by a trigger again */
	assert_int_equal(pressure_testing_only(w)->way, THRESHOLD_TRIGGER);
}

/*
 * The next reading finds a crossing that the kernel did not report: when one of its windows must
 * have crossed.
 */
static void test_reading(void **state)
{
	static const char *const when[] = { CPU(200, 2000) };
	_cleanup_json_ json_object *line = NULL;
	struct watch *w;

	if (!fake)
		skip();
	w = pressure_testing_watch(when, 1);
	/* 5 s are three windows: 599 ms may have been 199.7 in each. */
	had_read(w, 5 * NSEC_PER_SEC, 0);
	pretend(w, 599999);
	pressure_testing_drained();
	assert_int_equal(fake->a.pressure.crossings.missed, 0);
	had_read(w, 5 * NSEC_PER_SEC, 0);
	pretend(w, 600000);
	pressure_testing_drained();
	assert_int_equal(fake->a.pressure.crossings.missed, 1);
	line = fake_last(fake, "pressure");
	assert_string_equal(fake_text(line, "by"), "reading");
	assert_string_equal(fake_text(line, "stall_ms"), "600");
	/* The kernel's own word a moment later is of the same crossing. */
	had_read(w, 3 * NSEC_PER_SEC, 0);
	pressure_follow_notice(&fake->a.pressure, pressure_testing_of(w)->thresholds, false);
	assert_int_equal(fake->a.pressure.repeats, 1);
	assert_int_equal(fake->a.pressure.crossings.noticed, 0);
	assert_int_equal(fake_count(fake, "pressure"), 1);
}

/* Readings are not nearer than a second, however often the rings are drained. */
static void test_reading_apart(void **state)
{
	static const char *const when[] = { CPU(200, 10000) };
	struct psi_history *h;
	struct watch *w;

	if (!fake)
		skip();
	w = pressure_testing_watch(when, 1);
	h = &pressure_testing_of(w)->file[RESOURCE_CPU].history;
	assert_int_equal(h->count, 1);
	for (int i = 0; i < 40; i++)
		pressure_testing_drained();
	assert_int_equal(h->count, 1);
	assert_true(h->space * NSEC_PER_SEC > 15 * NSEC_PER_SEC);
	had_read(w, 2 * NSEC_PER_SEC, 0);
	pressure_testing_drained();
	assert_int_equal(h->count, 2);
}

/* 200 ms more of stall than a window ago, as the kernel reports it. */
static void notice_of(struct watch *w, enum resource resource, uint64_t from_us)
{
	struct threshold *t = pressure_testing_of(w)->thresholds;

	while (t->resource != resource)
		t = t->next;
	t->crossed = (struct psi_point){ .psi.some.total_us = from_us };
	had_read_of(w, resource, 3 * NSEC_PER_SEC, from_us);
	pretend_of(w, resource, from_us + 200000);
	pressure_follow_notice(&fake->a.pressure, t, false);
}

/* A rule by cgroup with two resources; the scan that follows each push finds the cgroup. */
static struct watch *push_two_resources(const char *other)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "{\"version\":1,\"rules\":[{\"name\":\"%s\",\"match\":{\"comm\":\"%s\"}},"
		 "{\"name\":\"two\",\"match\":{\"cgroup_prefix\":\"%s\"},\"when\":["
		 "{\"pressure\":\"cpu\",\"some_ms\":200},{\"pressure\":\"io\",\"some_ms\":200}]}]}",
		 other, other, group.path);
	fake_rules(fake, text);
	return idmap_get(&fake->a.watches.by_cgroup, group.id);
}

/*
 * Pressure that goes on in the session that it began triggers nothing, also when the same rule was
 * pushed meanwhile. Pressure of another resource is a trigger: held back, and reported.
 */
static void test_goes_on_in_its_session(void **state)
{
	_cleanup_json_ json_object *line = NULL;
	struct watch *w;

	if (!fake)
		skip();
	w = push_two_resources("first");
	assert_non_null(w);
	notice_of(w, RESOURCE_CPU, 0);
	assert_int_equal(fake_count(fake, "session.start"), 1);
	notice_of(w, RESOURCE_CPU, 200000);
	assert_ptr_equal(push_two_resources("second"), w);
	assert_non_null(w->session);
	notice_of(w, RESOURCE_CPU, 400000);
	assert_int_equal(fake->a.pressure.crossings.noticed, 3);
	assert_int_equal(fake_count(fake, "trigger.held"), 0);
	notice_of(w, RESOURCE_IO, 0);
	line = fake_last(fake, "trigger.held");
	assert_non_null(line);
	assert_string_equal(fake_text(line, "reason"), "session_running");
	assert_string_equal(fake_text(line, "resource"), "io");
}

/* The history of a scan grows as it is used, to the longest window at the shortest pace. */
static void test_scanned(void **state)
{
	struct followed_file p = { .fd = -1 };
	struct psi psi = {};

	assert_int_equal(psi_history_resize(&p.history, 16), 0);
	for (uint64_t i = 1; i <= 300; i++) {
		psi.some.total_us = i;
		threshold_add_reading(&p, i * 100 * NSEC_PER_MSEC, &psi);
		assert_int_equal(psi_history_newest(&p.history)->psi.some.total_us, i);
		assert_in_range(p.history.space, 16, 112);
		if (i <= 16)
			assert_int_equal(p.history.space, 16);
	}
	assert_int_equal(p.history.count, 112);
	assert_int_equal(
		psi_history_since(&p.history, 200 * 100 * NSEC_PER_MSEC)->psi.some.total_us, 200);
	psi_history_done(&p.history);
}

/* In a container that hides /proc/pressure the files of the cgroups are there all the same. */
static void test_scan_without_the_systems_file(void **state)
{
	static const char *const when[] = { CPU(200, 2000) };
	_cleanup_json_ json_object *line = NULL;
	struct pressure_system *system;
	const char *reason;
	struct watch *w;

	if (!fake)
		skip();
	system = &fake->a.pressure.scan.system[RESOURCE_CPU];
	close(system->fd);
	system->fd = -1;
	system->error = -EACCES;
	answer = -ENOENT;
	answer_why = "there is no broker";
	w = pressure_testing_watch(when, 1);
	had_read(w, 3 * NSEC_PER_SEC, 500000);
	pretend(w, 700000);
	pressure_testing_loop(500 * NSEC_PER_MSEC);
	line = fake_last(fake, "pressure");
	assert_string_equal(fake_text(line, "by"), "scan");
	assert_string_equal(pressure_scan_sleep(&fake->a.pressure.scan, &reason), "timer");
	assert_non_null(strstr(reason, "cannot be read"));
}

UNIT_TESTS(pressure_follow)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scanned),
		EACH(test_notice),
		EACH(test_early_notice),
		EACH(test_stall_counts_once),
		EACH(test_unreadable_at_notice),
		EACH(test_gone),
		EACH(test_switched_off),
		EACH(test_reading),
		EACH(test_reading_apart),
		EACH(test_goes_on_in_its_session),
		EACH(test_scan_without_the_systems_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
