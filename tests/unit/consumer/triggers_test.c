/* SPDX-License-Identifier: BSD-2-Clause */
/* Thresholds against real pressure files of a cgroup of our own, opened here instead of by a
 * broker. */
#include "fake_agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shared/broker.h"
#include "shared/cleanup.h"
#include "shared/clock.h"

static struct fake *fake;
static struct fake_cgroup group;
static struct triggers *ts;

/* What the opener does. */
static int opened, answer;
static const char *answer_why;
static bool armed; /* it hands out a file that has a trigger already */

static int opener(void *context, uint64_t cgroup_id, enum resource resource, int *ret_fd,
		  const char **ret_why)
{
	static const char text[] = "some 2000000 2000000";
	char file[4300];
	int fd;

	assert_ptr_equal(context, &opened);
	assert_int_equal(cgroup_id, group.id);
	opened++;
	*ret_why = answer_why;
	if (answer)
		return answer;
	snprintf(file, sizeof(file), "%s/%s.pressure", group.directory, resource_name(resource));
	fd = open(file, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	assert_true(fd >= 0);
	if (armed)
		assert_int_equal(write(fd, text, sizeof(text)), sizeof(text));
	*ret_fd = fd;
	return 0;
}

static int setup(void **state)
{
	fake = fake_new();
	if (!fake)
		return 0;
	ts = &fake->a.pressure.triggers;
	ts->opener = opener;
	ts->context = &opened;
	opened = answer = 0;
	answer_why = NULL;
	armed = false;
	if (fake->a.pressure.system[RESOURCE_CPU].fd < 0 ||
	    !fake_cgroup_make(fake, "triggers", &group)) {
		fake_free(fake);
		fake = NULL;
	}
	return 0;
}

static int teardown(void **state)
{
	if (!fake)
		return 0;
	fake_cgroup_remove(&group);
	fake_free(fake);
	fake = NULL;
	return 0;
}

/* `n` rules for our cgroup, each with its own text for `when`; bound to its watch. */
static struct watch *watch(const char *const *when, size_t n)
{
	static char text[16384];
	char one[1024];
	struct watch *w;

	strcpy(text, "{\"version\":1,\"rules\":[");
	for (size_t i = 0; i < n; i++) {
		snprintf(
			one, sizeof(one),
			"%s{\"name\":\"r%zu\",\"match\":{\"comm\":\"c%zu\",\"cgroup_prefix\":\"%s\"},\"when\":[%s]}",
			i ? "," : "", i, i, group.path, when[i]);
		strcat(text, one);
	}
	strcat(text, "]}");
	fake_rules(fake, text);
	cgroups_learn(&fake->a.cgroups, group.id, group.path);
	assert_int_equal(watch_get(&fake->a, group.id, 0, &w), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(watch_bind_cgroup(w, &fake->a.set->rules->rules[i]), 0);
	return w;
}

static const struct threshold *only(const struct watch *w)
{
	assert_non_null(w->thresholds);
	assert_null(w->thresholds->next);
	return w->thresholds;
}

/* The loop, for so long. */
static void stop(void *context, uint32_t events)
{
	loop_stop(context);
}

static void run_loop(uint64_t ns)
{
	struct loop_source *timer;

	assert_int_equal(loop_timer(fake->a.loop, stop, fake->a.loop, &timer), 0);
	assert_int_equal(loop_timer_set(timer, ns, 0), 0);
	assert_int_equal(loop_run(fake->a.loop), 0);
	loop_remove(timer);
}

/* A drain that is not held back by the one before. */
static void drained(void)
{
	fake->a.pressure.read_ns = 0;
	pressure_drained(&fake->a, clock_mono_ns());
}

#define CPU(stall, window) "{\"pressure\":\"cpu\",\"some_ms\":" #stall ",\"window_ms\":" #window "}"

/* Equal thresholds share one descriptor; watch.start says by what each resource is followed. */
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
	w = watch(when, 3);
	assert_int_equal(opened, 3);
	assert_int_equal(ts->set, 3);
	assert_int_equal(w->pressure[RESOURCE_CPU].by_trigger, 2);
	assert_int_equal(w->pressure[RESOURCE_MEMORY].by_trigger, 1);
	assert_int_equal(w->pressure[RESOURCE_CPU].by_scan, 0);
	/* Nothing of pressure's own wakes. */
	assert_int_equal(fake->a.pressure.every_ns, 0);
	start = fake_last(fake, "watch.start");
	assert_string_equal(fake_text(start, "follow"), "trigger");
	assert_null(json_object_object_get(start, "scan_ms"));
	cpu = json_object_object_get(json_object_object_get(start, "pressure"), "cpu");
	assert_string_equal(fake_text(cpu, "by"), "trigger");
	assert_string_equal(fake_text(cpu, "reason"), trigger_pace(ts->power));
	watch_remove(w, "cgroup_removed");
	assert_int_equal(ts->set, 0);
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
	for (const struct threshold *t = w->thresholds; t; t = t->next)
		if (t->stall_ms == stall_ms)
			return t->fd;
	return -1;
}

/* A change of rules keeps the triggers of what stays, and closes the others. */
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
	assert_int_equal(ts->set, 2);
	assert_int_equal(fd_of(w, 300), fd);
	assert_true(fd_of(w, 400) >= 0);
	assert_int_equal(fd_of(w, 200), -1);
	apply("");
	assert_int_equal(ts->set, 0);
	assert_null(w->thresholds);
	assert_int_equal(w->pressure[RESOURCE_CPU].fd, -1);
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
	w = watch(when, ARRAY_SIZE(when));
	assert_int_equal(opened, TRIGGERS_TURN);
	assert_int_equal(ts->set, TRIGGERS_TURN);
	assert_int_equal(w->pressure[RESOURCE_IO].by_scan, 80 - TRIGGERS_TURN);
	assert_int_equal(fake->a.pressure.every_ns, 200 * NSEC_PER_MSEC);
	run_loop(20 * NSEC_PER_MSEC);
	assert_int_equal(ts->set, 80);
	assert_int_equal(opened, 80);
	assert_int_equal(fake->a.pressure.every_ns, 0);
	assert_int_equal(ts->left, TRIGGERS_TURN);
}

/* Without a broker the scan follows, and says why; when it comes, the triggers do. */
static void test_no_broker(void **state)
{
	static const char *const when[] = { CPU(200, 1000) "," CPU(200, 2000) };
	_cleanup_json_ json_object *start = NULL;
	struct watch *w;

	if (!fake)
		skip();
	answer = -ENOTCONN;
	answer_why = "nobody listens";
	w = watch(when, 1);
	/* The first refusal holds for all until the next drain. */
	assert_int_equal(opened, 1);
	assert_int_equal(ts->set, 0);
	assert_int_equal(w->pressure[RESOURCE_CPU].by_scan, 2);
	assert_int_equal(fake->a.pressure.every_ns, 100 * NSEC_PER_MSEC);
	start = fake_last(fake, "watch.start");
	assert_string_equal(fake_text(start, "follow"), "scan");
	assert_string_equal(fake_text(start, "follow_reason"), "nobody listens");
	run_loop(20 * NSEC_PER_MSEC);
	assert_int_equal(opened, 1);
	drained();
	assert_int_equal(opened, 2);
	answer = 0;
	answer_why = NULL;
	drained();
	assert_int_equal(opened, 4);
	assert_true(ts->set >= 1);
	/* The window of 1 s is taken from who is privileged only. */
	assert_int_equal(w->pressure[RESOURCE_CPU].by_trigger,
			 ts->power == TRIGGER_PRIVILEGED ? 2 : 1);
	assert_int_equal(fake->a.pressure.every_ns,
			 ts->power == TRIGGER_PRIVILEGED ? 0 : 100 * NSEC_PER_MSEC);
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
		w = watch(when, 1);
		assert_int_equal(only(w)->way, THRESHOLD_SCAN);
		assert_string_equal(only(w)->why, trigger_refusal(errors[i]).why);
		drained();
		assert_int_equal(opened, 1);
		assert_int_equal(fake->a.pressure.every_ns, 200 * NSEC_PER_MSEC);
		watch_remove(w, "cgroup_removed");
		assert_int_equal(fake->a.pressure.every_ns, 0);
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
	w = watch(two, 1);
	assert_string_equal(only(w)->why, trigger_refusal(-EBUSY).why);
	assert_int_equal(ts->set, 0);
	watch_remove(w, "cgroup_removed");
	armed = false;
	w = watch(odd, 1);
	if (ts->power == TRIGGER_PLAIN)
		assert_string_equal(only(w)->why, trigger_refusal(-EINVAL).why);
	else
		assert_int_equal(only(w)->way, THRESHOLD_TRIGGER);
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
	w = watch(when, 1);
	assert_int_equal(opened, 1);
	assert_int_equal(w->thresholds->way, THRESHOLD_WAITING);
	drained();
	assert_int_equal(opened, 1);
	answer = 0;
	run_loop(1200 * NSEC_PER_MSEC);
	assert_int_equal(ts->set, 2);
}

/* Above the limit the scan serves the rest, a line says so once; freed ones are used. */
static void test_limit(void **state)
{
	static const char *const when[] = { CPU(200, 2000) "," CPU(300, 2000) "," CPU(400, 2000) };
	struct watch *w;

	if (!fake)
		skip();
	ts->max = 2;
	w = watch(when, 1);
	assert_int_equal(ts->set, 2);
	assert_int_equal(w->pressure[RESOURCE_CPU].by_scan, 1);
	assert_int_equal(fake_count(fake, "error"), 1);
	drained();
	assert_int_equal(fake_count(fake, "error"), 1);
	assert_int_equal(opened, 2);
	ts->max = 3;
	drained();
	assert_int_equal(ts->set, 3);
	assert_int_equal(fake->a.pressure.every_ns, 0);
}

/* From here on the watch reads its CPU pressure from a file of ours. */
static void pretend(struct watch *w, uint64_t total_us)
{
	struct watch_pressure *p = &w->pressure[RESOURCE_CPU];
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

/* The watch read this total so long ago, and nothing since. */
static void had_read(struct watch *w, uint64_t ago_ns, uint64_t total_us)
{
	struct psi_history *h = &w->pressure[RESOURCE_CPU].history;
	struct psi psi = { .some.total_us = total_us, .has_full = true };

	psi_history_clear(h);
	psi_history_add(h, clock_mono_ns() - ago_ns, &psi);
}

/* The totals decide whether what the kernel tells starts a session. */
static void test_notice(void **state)
{
	static const char *const when[] = { CPU(200, 2000) };
	_cleanup_json_ json_object *line = NULL;
	struct watch *w;

	if (!fake)
		skip();
	w = watch(when, 1);
	had_read(w, 3 * NSEC_PER_SEC, 500000);
	pretend(w, 699999);
	pressure_notice(w->thresholds, false);
	assert_int_equal(ts->notices, 1);
	assert_int_equal(ts->false_events, 1);
	assert_int_equal(fake_count(fake, "pressure"), 0);
	had_read(w, 3 * NSEC_PER_SEC, 500000);
	pretend(w, 700000);
	pressure_notice(w->thresholds, false);
	assert_int_equal(ts->crossings, 1);
	assert_int_equal(fake_count(fake, "session.start"), 1);
	line = fake_last(fake, "pressure");
	assert_string_equal(fake_text(line, "by"), "trigger");
	assert_string_equal(fake_text(line, "stall_ms"), "200");
	assert_in_range(json_object_get_int(json_object_object_get(line, "measured_ms")), 3000,
			3500);
}

/* A notice without the reading it would be compared with is none that can be believed. */
static void test_unreadable_at_notice(void **state)
{
	static const char *const when[] = { CPU(200, 2000) };
	struct watch *w;

	if (!fake)
		skip();
	w = watch(when, 1);
	had_read(w, 3 * NSEC_PER_SEC, 0);
	close(w->pressure[RESOURCE_CPU].fd);
	w->pressure[RESOURCE_CPU].fd = memfd_create("empty", MFD_CLOEXEC);
	pressure_notice(w->thresholds, false);
	assert_int_equal(ts->false_events, 1);
	assert_int_equal(ts->set, 1);
	assert_int_equal(fake_count(fake, "pressure"), 0);
}

/* The file went away under the trigger: no crossing, and the scan goes on. */
static void test_gone(void **state)
{
	static const char *const when[] = { CPU(200, 2000) };
	struct watch *w;

	if (!fake)
		skip();
	w = watch(when, 1);
	fake_cgroup_remove(&group);
	run_loop(50 * NSEC_PER_MSEC);
	assert_int_equal(ts->gone, 1);
	assert_int_equal(ts->set, 0);
	assert_int_equal(ts->notices, 0);
	assert_int_equal(only(w)->way, THRESHOLD_SCAN);
	assert_string_equal(only(w)->why, trigger_refusal(-ENODEV).why);
	assert_int_equal(fake_count(fake, "pressure"), 0);
}

/* What the kernel did not tell, the next reading finds: when one of its windows must have crossed.
 */
static void test_reading(void **state)
{
	static const char *const when[] = { CPU(200, 2000) };
	_cleanup_json_ json_object *line = NULL;
	struct watch *w;

	if (!fake)
		skip();
	w = watch(when, 1);
	/* 5 s are three windows: 599 ms may have been 199.7 in each. */
	had_read(w, 5 * NSEC_PER_SEC, 0);
	pretend(w, 599999);
	drained();
	assert_int_equal(ts->missed, 0);
	had_read(w, 5 * NSEC_PER_SEC, 0);
	pretend(w, 600000);
	drained();
	assert_int_equal(ts->missed, 1);
	line = fake_last(fake, "pressure");
	assert_string_equal(fake_text(line, "by"), "reading");
	assert_string_equal(fake_text(line, "stall_ms"), "600");
	/* The kernel's own word a moment later is of the same crossing. */
	had_read(w, 3 * NSEC_PER_SEC, 0);
	pressure_notice(w->thresholds, false);
	assert_int_equal(ts->repeats, 1);
	assert_int_equal(ts->crossings, 0);
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
	w = watch(when, 1);
	h = &w->pressure[RESOURCE_CPU].history;
	assert_int_equal(h->count, 1);
	for (int i = 0; i < 40; i++)
		drained();
	assert_int_equal(h->count, 1);
	assert_true(h->space * NSEC_PER_SEC > 15 * NSEC_PER_SEC);
	had_read(w, 2 * NSEC_PER_SEC, 0);
	drained();
	assert_int_equal(h->count, 2);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(test_shared),	  EACH(test_change),
		EACH(test_turns),	  EACH(test_no_broker),
		EACH(test_refusals),	  EACH(test_arming_fails),
		EACH(test_rate),	  EACH(test_limit),
		EACH(test_notice),	  EACH(test_unreadable_at_notice),
		EACH(test_gone),	  EACH(test_reading),
		EACH(test_reading_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
