/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The report of a process that the kernel kills because memory ran out, and the session that it
 * begins.
 */
#include "tests/unit/consumer/testing/group_testing.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "consumer/trigger/trigger.h"
#include "consumer/watch/binding.h"
#include "shared/tools/clock.h"

static struct watch *w;

static int setup(void **state)
{
	group_begin("oom");
	return 0;
}

/* One rule that watches the cgroup, with `more` of its keys. */
static void use_rule(const char *more)
{
	char text[1024];

	snprintf(
		text, sizeof(text),
		"{\"version\":1,\"rules\":[{\"name\":\"api\",\"match\":{\"cgroup_prefix\":\"%s\"}%s}]}",
		group.path, more);
	fake_rules(fake, text);
	cgroups_learn(&fake->a.cgroups, group.id, group.path);
	assert_int_equal(watch_get(&fake->a.watches, group.id, 0, &w), 0);
	assert_int_equal(binding_add_cgroup(w, fake->a.active.set->rules->rules), 0);
}

static void put_kill(uint64_t cgroup_id, const struct oom_victim *victim)
{
	struct event event = { .time_ns = clock_mono_ns(),
			       .start_ns = fake_start_ns(77),
			       .cgroup_id = cgroup_id,
			       .kind = EVENT_OOM,
			       .tgid = 77,
			       .uid = 5,
			       .comm = "hungry" };
	char bytes[sizeof(event) + sizeof(*victim)];

	memcpy(bytes, &event, sizeof(event));
	memcpy(bytes + sizeof(event), victim, sizeof(*victim));
	fake_put(&fake->events, bytes, sizeof(bytes));
	fake_drain_events(fake);
}

static struct oom_victim victim(enum oom_limit limit)
{
	return (struct oom_victim){ .slot = w->slot,
				    .limit = limit,
				    .limit_pages = limit == OOM_LIMIT_CGROUP ? 16384 : 0,
				    .limit_name = "a.service",
				    .anon_pages = 10,
				    .file_pages = 2,
				    .shmem_pages = 1,
				    .swap_pages = 3,
				    .has_memory = 1,
				    .score_adj = -998,
				    .asker_tgid = 78,
				    .asker_comm = "asker" };
}

static int64_t number(json_object *line, const char *object, const char *key)
{
	if (object)
		line = json_object_object_get(line, object);
	assert_non_null(json_object_object_get(line, key));
	return json_object_get_int64(json_object_object_get(line, key));
}

/* Without a rule that asks for it there is a line, and no session. */
static void test_line(void **state)
{
	_cleanup_json_ json_object *line = NULL;
	struct oom_victim v;
	long page = sysconf(_SC_PAGESIZE);

	if (!fake)
		skip();
	use_rule("");
	v = victim(OOM_LIMIT_CGROUP);
	v.limit_cgroup_id = group.id;
	put_kill(group.id, &v);
	line = fake_last(fake, "oom");
	assert_non_null(line);
	assert_string_equal(fake_text(line, "comm"), "hungry");
	assert_string_equal(fake_text(line, "cgroup"), group.path);
	assert_int_equal(number(line, NULL, "pid"), 77);
	assert_int_equal(number(line, NULL, "uid"), 5);
	assert_int_equal(number(line, "rss", "anon_bytes"), 10 * page);
	assert_int_equal(number(line, "rss", "file_bytes"), 2 * page);
	assert_int_equal(number(line, "rss", "shmem_bytes"), page);
	assert_int_equal(number(line, NULL, "swap_bytes"), 3 * page);
	assert_int_equal(number(line, NULL, "oom_score_adj"), -998);
	assert_int_equal(number(line, "asked", "pid"), 78);
	assert_string_equal(fake_text(line, "limit"), "cgroup");
	assert_string_equal(fake_text(line, "limit_name"), "a.service");
	assert_string_equal(fake_text(line, "limit_cgroup"), group.path);
	assert_int_equal(number(line, NULL, "limit_bytes"), 16384 * page);
	assert_null(fake_text(line, "session"));
	assert_int_equal(fake_count(fake, "session.start"), 0);
}

/* Unknown members have their reason; a victim without memory has no sizes. */
static void test_unknown(void **state)
{
	_cleanup_json_ json_object *line = NULL, *machine = NULL;
	struct oom_victim v;

	if (!fake)
		skip();
	use_rule("");
	v = victim(OOM_LIMIT_UNKNOWN);
	v.has_memory = 0;
	put_kill(group.id, &v);
	line = fake_last(fake, "oom");
	assert_null(fake_text(line, "limit"));
	assert_non_null(fake_text(line, "limit_reason"));
	assert_non_null(fake_text(line, "rss_reason"));
	v = victim(OOM_LIMIT_NONE);
	put_kill(group.id, &v);
	machine = fake_last(fake, "oom");
	assert_string_equal(fake_text(machine, "limit"), "machine");
	assert_null(fake_text(machine, "limit_name"));
	/* A number that no version of the kernel side writes. */
	v.limit = 99;
	put_kill(group.id, &v);
	assert_int_equal(fake_count(fake, "oom"), 3);
}

/* The rule's session has the line, which comes before that of the session. */
static void test_session(void **state)
{
	_cleanup_json_ json_object *start = NULL, *line = NULL, *all = NULL;
	const struct oom_victim *v;
	struct oom_victim one;
	json_object *reason;
	size_t n;

	if (!fake)
		skip();
	use_rule(",\"on\":\"oom_kill\"");
	one = victim(OOM_LIMIT_NONE);
	v = &one;
	put_kill(group.id, v);
	start = fake_last(fake, "session.start");
	assert_non_null(start);
	reason = json_object_object_get(json_object_object_get(start, "reason"), "oom_kill");
	assert_int_equal(number(reason, NULL, "pid"), 77);
	assert_string_equal(fake_text(reason, "comm"), "hungry");
	line = fake_last(fake, "oom");
	assert_string_equal(fake_text(line, "session"), fake_text(start, "session"));
	all = fake_lines(fake);
	n = json_object_array_length(all);
	assert_string_equal(fake_text(json_object_array_get_idx(all, n - 2), "type"), "oom");
	assert_int_equal(w->session->result->oom_kills.count, 1);
	assert_int_equal(w->session->result->oom_kills.lines, 1);
	assert_int_equal(w->session->result->oom_kills.first.pid, 77);
	/* The next one while it runs has its line in it, and begins no other. */
	put_kill(group.id, v);
	assert_int_equal(w->session->result->oom_kills.count, 2);
	assert_int_equal(w->session->result->oom_kills.lines, 2);
	assert_int_equal(fake_count(fake, "oom"), 2);
	assert_int_equal(fake_count(fake, "session.start"), 1);
	assert_int_equal(fake_count(fake, "trigger.held"), 1);
	session_end(&fake->a.sessions, w->session);
	triggers_step(&fake->a.triggers, clock_mono_ns() + NSEC_PER_SEC);
}

/* A rule of its own processes does not hear of others. */
static void test_scope(void **state)
{
	struct oom_victim v;

	if (!fake)
		skip();
	use_rule(",\"on\":\"oom_kill\",\"capture\":{\"scope\":\"process\"}");
	v = victim(OOM_LIMIT_NONE);
	put_kill(group.id, &v);
	assert_int_equal(fake_count(fake, "oom"), 1);
	assert_int_equal(fake_count(fake, "session.start"), 0);
}

/* A slot that is free, that does not exist, or has had another watch since: nothing is reported. */
static void test_stale(void **state)
{
	struct oom_victim v;

	if (!fake)
		skip();
	use_rule("");
	v = victim(OOM_LIMIT_NONE);
	v.slot = w->slot + 1;
	put_kill(group.id, &v);
	v.slot = NO_SLOT;
	put_kill(group.id, &v);
	v.slot = w->slot;
	w->start_ns = clock_mono_ns() + NSEC_PER_SEC;
	put_kill(group.id, &v);
	assert_int_equal(fake_count(fake, "oom"), 0);
	w->start_ns = 1;
	put_kill(group.id, &v);
	assert_int_equal(fake_count(fake, "oom"), 1);
}

UNIT_TESTS(oom_watch)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_line, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unknown, setup, teardown),
		cmocka_unit_test_setup_teardown(test_session, setup, teardown),
		cmocka_unit_test_setup_teardown(test_scope, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stale, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
