/* SPDX-License-Identifier: BSD-2-Clause */
/* Thresholds against real pressure files of a cgroup of our own. */
#include "tests/unit/consumer/testing/pressure_testing.h"

#include <errno.h>
#include <stdio.h>

#include "shared/broker/broker.h"
#include "shared/tools/clock.h"

/* Equal thresholds share one descriptor; watch.start has the way that each resource is followed. */
static void test_shared(void **state)
{
	static const char *const when[] = {
		CPU(200, 2000) ",{\"pressure\":\"memory\",\"full_ms\":100}",
		CPU(200, 2000),
		CPU(300, 2000),
	};
	_cleanup_json_ json_object *start = NULL;
	json_object *cpu;
	struct watch *w;

	if (!fake)
		skip();
	w = pressure_testing_watch(when, 3);
	assert_int_equal(opened, 3);
	assert_int_equal(opener->set, 3);
	assert_int_equal(pressure_testing_of(w)->file[RESOURCE_CPU].by_trigger, 2);
	assert_int_equal(pressure_testing_of(w)->file[RESOURCE_MEMORY].by_trigger, 1);
	assert_int_equal(pressure_testing_of(w)->file[RESOURCE_CPU].by_scan, 0);
	/* Nothing of pressure's own wakes. */
	assert_int_equal(fake->a.pressure.scan.every_ns, 0);
	start = fake_last(fake, "watch.start");
	assert_string_equal(fake_text(start, "follow"), "trigger");
	assert_null(json_object_object_get(start, "scan_ms"));
	cpu = json_object_object_get(json_object_object_get(start, "pressure"), "cpu");
	assert_string_equal(fake_text(cpu, "by"), "trigger");
	assert_string_equal(fake_text(cpu, "reason"), psi_trigger_pace(opener->power));
	watch_remove(w, "cgroup_removed");
	assert_int_equal(opener->set, 0);
}

static void apply(const char *when)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "{\"version\":1,\"rules\":[{\"name\":\"r\",\"match\":{\"cgroup_prefix\":"
		 "\"%s\"},\"when\":[%s]}]}",
		 group.path, when);
	fake_rules(fake, text);
}

static int fd_of(const struct watch *w, uint32_t stall_ms)
{
	for (const struct threshold *t = pressure_testing_of(w)->thresholds; t; t = t->next)
		if (t->stall_ms == stall_ms)
			return t->fd;
	return -1;
}

/* A change of rules keeps the triggers of unchanged thresholds, and closes the others. */
static void test_change(void **state)
{
	struct watch *w;
	int fd;

	if (!fake)
		skip();
	apply(CPU(200, 2000) "," CPU(300, 2000));
	w = idmap_get(&fake->a.watches.by_cgroup, group.id);
	assert_non_null(w);
	assert_int_equal(opened, 2);
	fd = fd_of(w, 300);
	assert_true(fd >= 0);
	apply(CPU(300, 2000) "," CPU(400, 2000));
	assert_ptr_equal(idmap_get(&fake->a.watches.by_cgroup, group.id), w);
	assert_int_equal(opened, 3);
	assert_int_equal(opener->set, 2);
	assert_int_equal(fd_of(w, 300), fd);
	assert_true(fd_of(w, 400) >= 0);
	assert_int_equal(fd_of(w, 200), -1);
	apply("");
	assert_int_equal(opener->set, 0);
	assert_null(pressure_testing_of(w)->thresholds);
	assert_int_equal(pressure_testing_of(w)->file[RESOURCE_CPU].fd, -1);
}

/* One turn of the loop opens so many; the scan serves the others until their turn. */
static void test_turns(void **state)
{
	static char texts[10][800];
	const char *when[10];
	struct watch *w;

	if (!fake)
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(when); i++) {
		for (size_t k = 0; k < 8; k++)
			snprintf(texts[i] + strlen(texts[i]), 100,
				 "%s{\"pressure\":\"io\",\"some_ms\":%zu}", k ? "," : "",
				 100 + i * 8 + k);
		when[i] = texts[i];
	}
	w = pressure_testing_watch(when, ARRAY_SIZE(when));
	assert_int_equal(opened, PSI_OPENER_TURN);
	assert_int_equal(opener->set, PSI_OPENER_TURN);
	assert_int_equal(pressure_testing_of(w)->file[RESOURCE_IO].by_scan, 80 - PSI_OPENER_TURN);
	assert_int_equal(fake->a.pressure.scan.every_ns, 200 * NSEC_PER_MSEC);
	pressure_testing_loop(20 * NSEC_PER_MSEC);
	assert_int_equal(opener->set, 80);
	assert_int_equal(opened, 80);
	assert_int_equal(fake->a.pressure.scan.every_ns, 0);
	assert_int_equal(opener->left, PSI_OPENER_TURN);
}

/* Without a broker the scan follows, and has the reason; when it comes, the triggers do. */
static void test_no_broker(void **state)
{
	static const char *const when[] = { CPU(200, 1000) "," CPU(200, 2000) };
	_cleanup_json_ json_object *start = NULL;
	struct watch *w;

	if (!fake)
		skip();
	answer = -ENOTCONN;
	answer_why = "not listening";
	w = pressure_testing_watch(when, 1);
	/* The first refusal holds for all until the next drain. */
	assert_int_equal(opened, 1);
	assert_int_equal(opener->set, 0);
	assert_int_equal(pressure_testing_of(w)->file[RESOURCE_CPU].by_scan, 2);
	assert_int_equal(fake->a.pressure.scan.every_ns, 100 * NSEC_PER_MSEC);
	start = fake_last(fake, "watch.start");
	assert_string_equal(fake_text(start, "follow"), "scan");
	assert_string_equal(fake_text(start, "follow_reason"), "not listening");
	pressure_testing_loop(20 * NSEC_PER_MSEC);
	assert_int_equal(opened, 1);
	pressure_testing_drained();
	assert_int_equal(opened, 2);
	answer = 0;
	answer_why = NULL;
	pressure_testing_drained();
	assert_int_equal(opened, 4);
	assert_true(opener->set >= 1);
	/* The window of 1 s is accepted from a privileged opener only. */
	assert_int_equal(pressure_testing_of(w)->file[RESOURCE_CPU].by_trigger,
			 opener->power == PSI_TRIGGER_PRIVILEGED ? 2 : 1);
	assert_int_equal(fake->a.pressure.scan.every_ns,
			 opener->power == PSI_TRIGGER_PRIVILEGED ? 0 : 100 * NSEC_PER_MSEC);
}

/* Each of the kernel's refusals leaves its own reason, and is not tried again. */
static void test_refusals(void **state)
{
	static const char *const when[] = { CPU(200, 2000) };
	static const int errors[] = { -EOPNOTSUPP, -ENODEV, -EACCES, -EPERM };

	if (!fake)
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		struct watch *w;

		opened = 0;
		answer = errors[i];
		w = pressure_testing_watch(when, 1);
		assert_int_equal(pressure_testing_only(w)->way, THRESHOLD_SCAN);
		assert_string_equal(pressure_testing_only(w)->reason,
				    psi_trigger_refusal(errors[i]).reason);
		pressure_testing_drained();
		assert_int_equal(opened, 1);
		assert_int_equal(fake->a.pressure.scan.every_ns, 200 * NSEC_PER_MSEC);
		watch_remove(w, "cgroup_removed");
		assert_int_equal(fake->a.pressure.scan.every_ns, 0);
	}
}

/* What may pass is tried again, once in each drain however many wait. */
static void test_passing(void **state)
{
	static const char *const when[] = { CPU(200, 2000) "," CPU(300, 2000) };
	static const int errors[] = { -EMFILE, -ENFILE, -ENOMEM };
	struct watch *w;

	if (!fake)
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		opened = 0;
		answer = errors[i];
		w = pressure_testing_watch(when, 1);
		for (const struct threshold *t = pressure_testing_of(w)->thresholds; t;
		     t = t->next) {
			assert_int_equal(t->way, THRESHOLD_WAITING);
			assert_string_equal(t->reason, psi_trigger_refusal(errors[i]).reason);
		}
		pressure_testing_loop(20 * NSEC_PER_MSEC);
		assert_int_equal(opened, 1);
		pressure_testing_drained();
		assert_int_equal(opened, 2);
		answer = 0;
		pressure_testing_drained();
		assert_int_equal(opener->set, 2);
		watch_remove(w, "cgroup_removed");
	}
}

/* A file with a trigger on it, and a window that the opener's lack of privilege forbids. */
static void test_arming_fails(void **state)
{
	static const char *const two[] = { CPU(200, 2000) }, *const odd[] = { CPU(200, 3000) };
	struct watch *w;

	if (!fake)
		skip();
	armed = true;
	w = pressure_testing_watch(two, 1);
	assert_string_equal(pressure_testing_only(w)->reason, psi_trigger_refusal(-EBUSY).reason);
	assert_int_equal(opener->set, 0);
	watch_remove(w, "cgroup_removed");
	armed = false;
	w = pressure_testing_watch(odd, 1);
	if (opener->power == PSI_TRIGGER_PLAIN)
		assert_string_equal(pressure_testing_only(w)->reason,
				    psi_trigger_refusal(-EINVAL).reason);
	else
		assert_int_equal(pressure_testing_only(w)->way, THRESHOLD_TRIGGER);
}

/* What the broker serves in a second is no refusal: it goes on later. */
static void test_rate(void **state)
{
	static const char *const when[] = { CPU(200, 2000) "," CPU(300, 2000) };
	struct watch *w;

	if (!fake)
		skip();
	answer = -EACCES;
	answer_why = broker_refusal_help(REFUSAL_RATE);
	w = pressure_testing_watch(when, 1);
	assert_int_equal(opened, 1);
	assert_int_equal(pressure_testing_of(w)->thresholds->way, THRESHOLD_WAITING);
	pressure_testing_drained();
	assert_int_equal(opened, 1);
	answer = 0;
	pressure_testing_loop(1200 * NSEC_PER_MSEC);
	assert_int_equal(opener->set, 2);
}

/* Above the limit the scan serves the rest, a line reports it once; freed ones are used. */
static void test_limit(void **state)
{
	static const char *const when[] = { CPU(200, 2000) "," CPU(300, 2000) "," CPU(400, 2000) };
	struct watch *w;

	if (!fake)
		skip();
	opener->max = 2;
	w = pressure_testing_watch(when, 1);
	assert_int_equal(opener->set, 2);
	assert_int_equal(pressure_testing_of(w)->file[RESOURCE_CPU].by_scan, 1);
	assert_int_equal(fake_count(fake, "error"), 1);
	pressure_testing_drained();
	assert_int_equal(fake_count(fake, "error"), 1);
	assert_int_equal(opened, 2);
	opener->max = 3;
	pressure_testing_drained();
	assert_int_equal(opener->set, 3);
	assert_int_equal(fake->a.pressure.scan.every_ns, 0);
}

UNIT_TESTS(psi_opener)
{
	const struct CMUnitTest tests[] = {
		EACH(test_shared),	 EACH(test_change),   EACH(test_turns),
		EACH(test_no_broker),	 EACH(test_refusals), EACH(test_passing),
		EACH(test_arming_fails), EACH(test_rate),     EACH(test_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
