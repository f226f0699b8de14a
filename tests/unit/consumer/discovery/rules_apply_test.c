/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A rule set on its way into force: the switch, the kept state, and that a bad one changes nothing.
 */
#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "consumer/discovery/rules_apply.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/io.h"

#define ONE(name, comm) "{\"name\":\"" name "\",\"match\":{\"comm\":\"" comm "\"}}"
#define SET(rules)	"{\"version\":1,\"rules\":[" rules "]}"

static struct fake *fake;
static char path[128];

static int setup(void **state)
{
	fake = fake_new();
	if (!fake)
		return 0;
	snprintf(path, sizeof(path), "%s/rules.json", fake->dir);
	fake->a.discovery.rules_path = path;
	return 0;
}

static int teardown(void **state)
{
	if (!fake)
		return 0;
	unlink(path);
	fake_free(fake);
	return 0;
}

static void write_file(const char *text, size_t bytes)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(io_write_full(fd, text, bytes), 0);
}

/* How many keys the trie of names `which` has. */
static size_t trie_keys(uint32_t which)
{
	struct comm_key key, next;
	size_t n = 0;

	for (void *from = NULL;
	     bpf_map_get_next_key(fake->a.pins.rules_fd[which], from, &next) == 0; from = &key, n++)
		key = next;
	return n;
}

static uint64_t number(json_object *line, const char *key)
{
	return json_object_get_uint64(json_object_object_get(line, key));
}

static void test_switch(void **state)
{
	_cleanup_json_ json_object *line = NULL;
	uint32_t active, generation;

	if (!fake)
		skip();
	active = fake->control.active;
	generation = fake->control.generation;
	assert_int_equal(fake->control.events_on, 0); /* without rules nothing is looked for */
	fake_rules(fake, SET(ONE("api", "node") "," ONE("db", "postgres")));
	assert_int_equal(fake->control.active, !active);
	assert_int_equal(fake->control.scan_trie, fake->control.active);
	assert_int_equal(fake->control.generation, generation + 1);
	assert_int_equal(fake->control.events_on, 1);
	assert_int_equal(trie_keys(fake->control.active), 2);
	assert_int_equal(trie_keys(!fake->control.active), 0);
	line = fake_last(fake, "rules.applied");
	assert_int_equal(number(line, "generation"), generation + 1);
	assert_int_equal(number(line, "count"), 2);
	assert_int_equal(number(line, "unchanged_watches"), 0);
	assert_string_equal(fake_text(line, "source"), "file:/unit/rules.json");
	assert_null(json_object_object_get(line, "peer"));
	fake_rules(fake, SET(""));
	assert_int_equal(fake->control.active, active);
	assert_int_equal(fake->control.events_on, 0);
}

/* One rule more than the kernel's tables hold: nothing has changed, and a line reports it. */
static void test_too_many(void **state)
{
	_cleanup_json_ json_object *line = NULL;
	_cleanup_free_ char *text = NULL;
	const struct ruleset *before;
	struct control words;
	size_t bytes = 0;

	if (!fake)
		skip();
	fake_rules(fake, SET(ONE("api", "node")));
	before = fake->a.active.set;
	words = fake->control;
	text = malloc(32768);
	assert_non_null(text);
	for (unsigned int i = 0; i <= fake->a.pins.abi.rules; i++)
		bytes += (size_t)snprintf(text + bytes, 32768 - bytes, "%s" ONE("r%u", "c%u"),
					  i ? "," : "{\"version\":1,\"rules\":[", i, i);
	snprintf(text + bytes, 32768 - bytes, "]}");
	write_file(text, strlen(text));
	assert_int_equal(rules_apply_file(&fake->a.discovery), -ENOSPC);
	assert_ptr_equal(fake->a.active.set, before);
	assert_memory_equal(&fake->control, &words, sizeof(words));
	assert_int_equal(trie_keys(fake->control.active), 1);
	assert_int_equal(fake_count(fake, "rules.applied"), 2);
	line = fake_last(fake, "error");
	assert_string_equal(fake_text(line, "code"), "rules_file");
}

/* What a rule has spent of its budget stays with its name. */
static void test_budget(void **state)
{
	uint64_t now = clock_mono_ns();

	if (!fake)
		skip();
	fake_rules(fake, SET(ONE("api", "node") "," ONE("db", "postgres")));
	budget_spend(&fake->a.active.set->budgets[0], now, 700);
	fake_rules(fake, SET(ONE("other", "x") "," ONE("api", "deno")));
	assert_int_equal(budget_spent_ms(&fake->a.active.set->budgets[0], now), 0);
	assert_int_equal(budget_spent_ms(&fake->a.active.set->budgets[1], now), 700);
}

/* A process follows its rule into the new set; where it is gone, or another by now, it has none. */
static void test_processes(void **state)
{
	struct task_record task = { .tgid = 100, .comm = "node" };
	struct fake_cgroup group;
	struct process *p;

	if (!fake || !fake_cgroup_make(fake, "apply", &group))
		skip();
	task.start_ns = fake_start_ns(100);
	task.cgroup_id = group.id;
	fake_rules(fake, SET(ONE("api", "node")));
	fake_event(fake, EVENT_EXEC, 100, task.cgroup_id, "node");
	p = process_find(&fake->a.processes, 100, task.start_ns);
	assert_non_null(p);
	assert_ptr_equal(p->rule, &fake->a.active.set->rules->rules[0]);
	fake_tasks(fake, &task, 1);
	fake_rules(fake, SET(ONE("db", "postgres") "," ONE("api", "node")));
	assert_ptr_equal(p->rule, &fake->a.active.set->rules->rules[1]);
	assert_non_null(p->watch);
	assert_int_equal(fake_count(fake, "watch.stop"), 0);
	assert_int_equal(fake_count(fake, "process.match"), 1); /* nothing new to be reported */
	fake_rules(fake, SET(ONE("db", "postgres")));
	assert_null(p->rule);
	assert_null(p->watch);
	assert_int_equal(fake->a.watches.count, 0);
	assert_int_equal(fake_count(fake, "watch.stop"), 1);
	fake_cgroup_remove(&group);
}

/* A prefix of this test's own cgroup, and none of other tests' beside it. */
static void push_by_cgroup(const char *more, const struct fake_cgroup *group)
{
	char text[512];

	snprintf(
		text, sizeof(text),
		"{\"version\":1,\"rules\":[{\"name\":\"broad\",\"match\":{\"cgroup_prefix\":\"%.*s\"}}"
		"%s%s%s]}",
		(int)strlen(group->path) - 1, group->path, *more ? "," : "", more,
		*more ? "" : ",{\"name\":\"other\",\"match\":{\"comm\":\"other\"}}");
	fake_rules(fake, text);
}

static void expect_bound(const struct fake_cgroup *group, const struct process *p, const char *name)
{
	const struct watch *w = idmap_get(&fake->a.watches.by_cgroup, group->id);

	assert_non_null(w);
	assert_int_equal(w->n_bindings, 1);
	assert_string_equal(w->bindings[0].rule->name, name);
	assert_true(w->bindings[0].by_cgroup);
	assert_int_equal(w->bindings[0].processes, 1);
	assert_string_equal(p->rule->name, name);
}

/*
 * A rule by cgroup takes over the watches for which it is the most specific one, as if the set had
 * been there from the start, and gives them back when it goes.
 */
static void test_more_specific(void **state)
{
	_cleanup_json_ json_object *line = NULL;
	struct task_record task = { .tgid = 100, .comm = "node" };
	struct fake_cgroup group;
	struct process *p;
	char narrow[256];

	if (!fake || !fake_cgroup_make(fake, "apply", &group))
		skip();
	task.start_ns = fake_start_ns(100);
	task.cgroup_id = group.id;
	fake_tasks(fake, &task, 1);
	push_by_cgroup("", &group);
	p = process_find(&fake->a.processes, 100, task.start_ns);
	assert_non_null(p);
	expect_bound(&group, p, "broad");
	snprintf(narrow, sizeof(narrow),
		 "{\"name\":\"narrow\",\"match\":{\"cgroup_prefix\":\"%s\"}}", group.path);
	push_by_cgroup(narrow, &group);
	expect_bound(&group, p, "narrow");
	line = fake_last(fake, "rules.applied");
	assert_int_equal(number(line, "unchanged_watches"), 0);
	push_by_cgroup("", &group);
	expect_bound(&group, p, "broad");
	assert_int_equal(fake_count(fake, "watch.stop"), 0);
	fake_cgroup_remove(&group);
}

static void test_file(void **state)
{
	static const char text[] = SET(ONE("api", "node"));
	_cleanup_json_ json_object *line = NULL;

	if (!fake)
		skip();
	write_file(text, strlen(text));
	assert_int_equal(rules_apply_file(&fake->a.discovery), 0);
	assert_int_equal(fake->a.active.set->rules->count, 1);
	line = fake_last(fake, "rules.applied");
	assert_memory_equal(fake_text(line, "source"), "file:", 5);
	assert_string_equal(fake_text(line, "source") + 5, path);
}

/* The line names the file as the cause, with the reason. */
static void expect_unread(const char *why)
{
	_cleanup_json_ json_object *line = fake_last(fake, "rules.rejected");
	json_object *fault;

	assert_non_null(line);
	assert_int_equal(number(line, "fault_count"), 1);
	fault = json_object_array_get_idx(json_object_object_get(line, "faults"), 0);
	assert_non_null(strstr(fake_text(fault, "message"), why));
}

/* A file that cannot be read, or is no rule set, leaves the running one alone. */
static void test_bad_file(void **state)
{
	static const char faulty[] = SET("{\"name\":\"api\",\"match\":{\"com\":\"node\"}}");
	static const char right[] = SET(ONE("api", "node"));
	_cleanup_json_ json_object *line = NULL;
	_cleanup_free_ char *large = calloc(1, RULES_TEXT_BYTES + 1);
	const struct ruleset *before;
	json_object *fault;

	if (!fake)
		skip();
	before = fake->a.active.set;
	assert_int_equal(rules_apply_file(&fake->a.discovery), -ENOENT);
	expect_unread("No such file");
	assert_non_null(large);
	write_file(large, RULES_TEXT_BYTES + 1);
	assert_int_equal(rules_apply_file(&fake->a.discovery), -EFBIG);
	expect_unread("longer than 1 MiB");
	assert_int_equal(fake_count(fake, "rules.rejected"), 2);
	/* A FIFO without a writer: an open would wait for one. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(rules_apply_file(&fake->a.discovery), -EINVAL);
	expect_unread("no regular file");
	assert_int_equal(unlink(path), 0);
	write_file(faulty, strlen(faulty));
	assert_int_equal(rules_apply_file(&fake->a.discovery), -EINVAL);
	assert_ptr_equal(fake->a.active.set, before);
	line = fake_last(fake, "rules.rejected");
	assert_int_equal(number(line, "fault_count"),
			 json_object_array_length(json_object_object_get(line, "faults")));
	fault = json_object_array_get_idx(json_object_object_get(line, "faults"), 0);
	assert_memory_equal(fake_text(fault, "pointer"), "/rules/0/match", 14);
	assert_int_equal(number(fault, "line"), 1);
	/* The status reports it until the file is right. */
	assert_true(fake->a.discovery.refused.since_ns > 0);
	assert_int_equal(fake->a.discovery.refused.faults, number(line, "fault_count"));
	assert_non_null(strstr(fake->a.discovery.refused.first, ": /rules/0/match: "));
	assert_non_null(strstr(fake->a.discovery.refused.first, ".json:1:"));
	assert_memory_equal(fake->a.discovery.refused.first, path, strlen(path));
	write_file(right, strlen(right));
	assert_int_equal(rules_apply_file(&fake->a.discovery), 0);
	assert_int_equal(fake->a.discovery.refused.since_ns, 0);
}

/* More faults than a line holds: those that do not fit are counted. */
static void test_many_faults(void **state)
{
	_cleanup_json_ json_object *line = NULL;
	_cleanup_free_ char *text = malloc(65536);
	size_t bytes = 0, listed;

	if (!fake)
		skip();
	assert_non_null(text);
	for (unsigned int i = 0; i < 300; i++)
		bytes += (size_t)snprintf(text + bytes, 65536 - bytes,
					  "%s{\"name\":\"r%u\",\"match\":{\"comm\":\"\"}}",
					  i ? "," : "{\"version\":1,\"rules\":[", i);
	snprintf(text + bytes, 65536 - bytes, "]}");
	write_file(text, strlen(text));
	assert_int_equal(rules_apply_file(&fake->a.discovery), -EINVAL);
	line = fake_last(fake, "rules.rejected");
	listed = json_object_array_length(json_object_object_get(line, "faults"));
	assert_true(number(line, "fault_count") >= 300);
	assert_true(listed > 5 && number(line, "faults_omitted") > 0);
	assert_int_equal(listed + number(line, "faults_omitted"), number(line, "fault_count"));
	assert_true(strlen(json_object_to_json_string_ext(
			    line, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE)) <
		    fake->a.lines.max_bytes);
}

UNIT_TESTS(rules_apply)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_switch, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_budget, setup, teardown),
		cmocka_unit_test_setup_teardown(test_processes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_more_specific, setup, teardown),
		cmocka_unit_test_setup_teardown(test_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_faults, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
