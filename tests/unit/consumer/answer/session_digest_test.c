/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <json-c/json.h>
#include <stdio.h>

#include "consumer/answer/session_digest.h"
#include "consumer/answer/session_headline.h"
#include "consumer/naming/module_advice.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"

static struct session_digest summary;
static struct stack *stacks[10000]; /* they stay as long as the summary */
static size_t stack_count;

static int setup(void **state)
{
	return session_digest_init(&summary);
}

static int teardown(void **state)
{
	session_digest_done(&summary);
	while (stack_count)
		free(stacks[--stack_count]);
	return 0;
}

/* One stack of frames kernel ones and then user ones, of which the innermost carries the time. */
static void add(const char *fn, const char *module, uint64_t weight, enum phase phase)
{
	struct stack *s = calloc(1, sizeof(*s));
	struct named_frame frames[3] = {
		{ .fn = "schedule", .module = "kernel", .kind = "kernel" },
		{ .fn = fn, .reason = fn ? NULL : "no_symbol", .module = module, .kind = "user" },
		{ .fn = "main", .module = "/bin/x", .kind = "user" },
	};

	assert_non_null(s);
	s->kernel_frames = 1;
	s->user_frames = 2;
	s->weight_ns = weight;
	s->count = 1;
	s->phase = (uint8_t)phase;
	strcpy(s->comm, "web");
	session_digest_add(&summary, SIGNAL_ONCPU, s, frames, 3);
	assert_true(stack_count < ARRAY_SIZE(stacks));
	stacks[stack_count++] = s;
}

static json_object *write_out(void)
{
	_cleanup_(jsonw_done) struct jsonw w;
	json_object *root;

	jsonw_init(&w, 1 << 20);
	session_digest_sort(&summary);
	jsonw_object(&w, NULL);
	session_digest_write(&summary, &w);
	jsonw_object_end(&w);
	jsonw_string_n(&w, NULL, "", 0);
	assert_int_equal(jsonw_end(&w), 0);
	/* The empty string behind was there to be cut off: it makes room for the NUL. */
	w.data[w.bytes - 3] = 0;
	root = json_tokener_parse(w.data);
	assert_non_null(root);
	return root;
}

static const char *text(json_object *row, const char *key)
{
	return json_object_get_string(json_object_object_get(row, key));
}

static void test_top_order(void **state)
{
	json_object *root, *top;

	add("warm", "/bin/x", 300, PHASE_DURING);
	add("hot", "/bin/x", 400, PHASE_DURING);
	add("hot", "/bin/x", 100, PHASE_DURING);
	/* The same name in another file is another function. */
	add("hot", "/lib/y.so", 150, PHASE_DURING);
	/* The time before does not explain the stall. */
	add("earlier", "/bin/x", 100000, PHASE_BEFORE);
	add("cold", "/bin/x", 50, PHASE_DURING);
	root = write_out();
	top = json_object_object_get(root, "top");
	assert_int_equal(json_object_array_length(top), 4);
	assert_string_equal(text(json_object_array_get_idx(top, 0), "fn"), "hot");
	assert_string_equal(text(json_object_array_get_idx(top, 0), "module"), "/bin/x");
	assert_string_equal(text(json_object_array_get_idx(top, 0), "share"), "0.500");
	assert_string_equal(text(json_object_array_get_idx(top, 1), "fn"), "warm");
	assert_string_equal(text(json_object_array_get_idx(top, 2), "module"), "/lib/y.so");
	assert_string_equal(text(json_object_array_get_idx(top, 3), "fn"), "cold");
	assert_int_equal(json_object_array_length(json_object_object_get(root, "modules_unnamed")),
			 0);
	json_object_put(root);
}

static void test_bounds(void **state)
{
	json_object *root, *top, *unnamed;
	char modules[40][32];

	for (size_t i = 0; i < 40; i++) {
		snprintf(modules[i], sizeof(modules[i]), "/lib/%zu.so", i);
		add(NULL, modules[i], i + 1, PHASE_DURING);
	}
	root = write_out();
	top = json_object_object_get(root, "top");
	unnamed = json_object_object_get(root, "modules_unnamed");
	assert_int_equal(json_object_array_length(top), SUMMARY_TOP);
	assert_int_equal(json_object_array_length(unnamed), SUMMARY_MODULES);
	assert_string_equal(text(json_object_array_get_idx(unnamed, 0), "why"), "no_symbol");
	assert_null(json_object_object_get(json_object_array_get_idx(top, 0), "fn"));
	json_object_put(root);
}

/* A stack that ends in `module`: by its user frames it is broken. */
static void add_broken(const char *module, const char *why, uint64_t count)
{
	struct named_frame frames[1] = {
		{ .fn = why ? NULL : "helper", .reason = why, .module = module, .kind = "user" },
	};
	struct stack s = { .user_frames = 1, .count = count, .phase = PHASE_DURING };

	session_digest_add(&summary, SIGNAL_ONCPU, &s, frames, 1);
}

/* What stacks are worth, by module, and the sentences that help. */
static void test_quality(void **state)
{
	static const char *const sentences[] = {
		"libfoo.so.1 was built without frame pointers and without symbols: apt install "
		"$(dpkg -S '*/lib/libfoo.so.1' | cut -d: -f1)-dbgsym (from debian-debug), or dnf "
		"debuginfo-install /usr/lib/libfoo.so.1",
		"app has not all of its symbols: install its debug symbols, or build it without "
		"strip",
		"stacks end in libbar2.so, which was built without frame pointers: "
		"-fno-omit-frame-pointer keeps them",
	};
	json_object *root, *quality, *broken, *advice;

	add_broken("/usr/lib/libfoo.so.1", "stripped", 60);
	add_broken("/opt/libbar2.so", NULL, 20);
	add("start", "/opt/whole", 1, PHASE_DURING); /* it ends in main of /bin/x */
	add(NULL, "/opt/app", 1, PHASE_DURING);
	root = write_out();
	quality = json_object_object_get(root, "stack_quality");
	assert_string_equal(text(quality, "broken"), "82");
	assert_string_equal(text(quality, "complete"), "0");
	assert_string_equal(text(quality, "unnamed_share"), "0.709");
	broken = json_object_object_get(root, "modules_broken");
	assert_int_equal(json_object_array_length(broken), 3);
	assert_string_equal(text(json_object_array_get_idx(broken, 0), "module"),
			    "/usr/lib/libfoo.so.1");
	assert_string_equal(text(json_object_array_get_idx(broken, 0), "samples"), "60");
	advice = json_object_object_get(root, "advice");
	assert_string_equal(json_object_get_string(json_object_array_get_idx(advice, 0)),
			    sentences[0]);
	assert_string_equal(json_object_get_string(json_object_array_get_idx(advice, 1)),
			    sentences[1]);
	assert_string_equal(json_object_get_string(json_object_array_get_idx(advice, 2)),
			    sentences[2]);
	json_object_put(root);
}

/* By the file its leaf has no caller: no way to build it helps. */
static void test_ends_in_leaf(void **state)
{
	struct named_frame frame = { .fn = "helper", .module = "/opt/app", .kind = "user" };
	struct stack walked = { .user_frames = 1,
				.count = 5,
				.flags = SAMPLE_UNWOUND,
				.stop_reason = UNWIND_END_COMPLETE };
	json_object *root, *broken, *quality;

	session_digest_meet(&summary, &walked);
	session_digest_add(&summary, SIGNAL_ONCPU, &walked, &frame, 1);
	root = write_out();
	broken = json_object_object_get(root, "modules_broken");
	assert_string_equal(text(json_object_array_get_idx(broken, 0), "reason"), "leaf");
	quality = json_object_object_get(root, "stack_quality");
	assert_string_equal(text(json_object_object_get(quality, "unwound"), "leaf"), "5");
	assert_int_equal(json_object_array_length(json_object_object_get(root, "advice")), 0);
	json_object_put(root);
}

/*
 * The first samples of a process come before its table, by frame pointers. Their shortness proves
 * nothing about the build of the file: a rebuild would not help.
 */
static void test_before_table(void **state)
{
	struct named_frame frame = { .fn = "helper", .module = "/opt/app", .kind = "user" };
	struct stack early = { .tgid = 7, .start_ns = 1, .user_frames = 1, .count = 5 };
	struct stack walked = early, never = early;
	json_object *root, *broken, *advice;

	walked.flags = SAMPLE_UNWOUND;
	walked.user_frames = 2;
	walked.stop_reason = UNWIND_END_COMPLETE;
	never.tgid = 8;
	session_digest_meet(&summary, &early);
	session_digest_meet(&summary, &walked);
	session_digest_add(&summary, SIGNAL_ONCPU, &early, &frame, 1);
	session_digest_add(&summary, SIGNAL_ONCPU, &walked, &frame, 1);
	root = write_out();
	broken = json_object_object_get(root, "modules_broken");
	assert_int_equal(json_object_array_length(broken), 1);
	assert_string_equal(text(json_object_array_get_idx(broken, 0), "reason"), "before_table");
	assert_int_equal(json_object_array_length(json_object_object_get(root, "advice")), 0);
	json_object_put(root);
	/* A process without a table is another case, of the same module. */
	session_digest_meet(&summary, &never);
	session_digest_add(&summary, SIGNAL_ONCPU, &never, &frame, 1);
	root = write_out();
	broken = json_object_object_get(root, "modules_broken");
	assert_int_equal(json_object_array_length(broken), 2);
	advice = json_object_object_get(root, "advice");
	assert_int_equal(json_object_array_length(advice), 1);
	assert_non_null(strstr(json_object_get_string(json_object_array_get_idx(advice, 0)),
			       "-fno-omit-frame-pointer"));
	json_object_put(root);
}

/*
 * Stacks that end for want of a place in the table are no module's fault: that is reported first.
 */
static void test_no_place(void **state)
{
	struct named_frame frame = { .fn = "helper", .module = "/opt/app", .kind = "user" };
	struct stack s = { .user_frames = 1,
			   .count = 3,
			   .phase = PHASE_DURING,
			   .flags = SAMPLE_UNWOUND,
			   .stop_reason = UNWIND_END_NO_PLACE };
	json_object *root, *broken, *advice;

	add_broken("/usr/lib/libbar2.so", NULL, 20);
	session_digest_add(&summary, SIGNAL_ONCPU, &s, &frame, 1);
	root = write_out();
	broken = json_object_object_get(root, "modules_broken");
	assert_string_equal(text(json_object_array_get_idx(broken, 1), "reason"), "no_place");
	advice = json_object_object_get(root, "advice");
	assert_int_equal(json_object_array_length(advice), 2);
	assert_string_equal(json_object_get_string(json_object_array_get_idx(advice, 0)),
			    SUMMARY_NO_PLACE);
	json_object_put(root);
}

/*
 * More functions than are distinguished: one that was known before goes on being counted as itself.
 */
static void test_too_many(void **state)
{
	static char names[SUMMARY_KEYS + 100][16];
	const uint64_t hot = 1000;
	json_object *root, *top;

	add("hot", "/bin/x", hot, PHASE_DURING);
	for (size_t i = 0; i < SUMMARY_KEYS + 100; i++) {
		snprintf(names[i], sizeof(names[i]), "f%zu", i);
		add(names[i], "/bin/x", 1, PHASE_DURING);
	}
	add("hot", "/bin/x", 100 * hot, PHASE_DURING);
	assert_int_equal(summary.functions.total, 101 * hot + SUMMARY_KEYS + 100);
	root = write_out();
	top = json_object_object_get(root, "top");
	assert_string_equal(text(json_object_array_get_idx(top, 0), "fn"), "hot");
	assert_string_equal(text(json_object_array_get_idx(top, 0), "share"), "0.960");
	assert_string_equal(text(json_object_array_get_idx(top, 1), "fn"), "(other)");
	json_object_put(root);
}

/* A stack without user frames counts for its innermost kernel frame. */
static void test_self(void **state)
{
	struct named_frame frames[2] = {
		{ .fn = "leaf", .module = "kernel", .kind = "kernel" },
		{ .fn = "kthread", .module = "kernel", .kind = "kernel" }
	};
	struct stack s = { .kernel_frames = 2, .weight_ns = 5, .count = 1, .phase = PHASE_DURING };
	json_object *root;

	session_digest_add(&summary, SIGNAL_ONCPU, &s, frames, 2);
	session_digest_add(&summary, SIGNAL_ONCPU, &s, frames, 0);
	root = write_out();
	assert_string_equal(
		text(json_object_array_get_idx(json_object_object_get(root, "top"), 0), "fn"),
		"leaf");
	json_object_put(root);
}

/* It ran. */
static const struct signal_kind runs = { .stacks_of = STACKS_RUNNING },
				waits = { .stacks_of = STACKS_WAITING };
static struct signal oncpu = { .kind = &runs };
static const struct answer certain = { .level = ANSWER_CERTAIN };

static void headline(const struct session_result *s, char *line, size_t space)
{
	json_object_put(write_out());
	memset(line, 'x', space);
	session_headline_write(&summary, s, NULL, &certain, line, space);
	assert_non_null(memchr(line, 0, space));
}

/* Where looks were made the headline does not claim that there were none. */
static void test_headline_of_looks(void **state)
{
	static char cgroup[] = "/c";
	struct signal_stacks taken = {};
	struct signal offcpu = { .kind = &waits, .taken = &taken };
	struct session_result s = {
		.signals = { [SIGNAL_ONCPU] = &oncpu, [SIGNAL_OFFCPU] = &offcpu },
		.cgroup = cgroup,
		.reason = { .kind = TRIGGER_PRESSURE, .when = { .resource = RESOURCE_MEMORY } },
	};
	char line[1024];

	headline(&s, line, sizeof(line));
	assert_non_null(strstr(line, "; sampled waits for memory: under 1 ms;"));
}

static void test_headline(void **state)
{
	static char cgroup[] = "/system.slice/api.service";
	struct session_result s = {
		.signals[SIGNAL_ONCPU] = &oncpu,
		.cgroup = cgroup,
		.reason = { .kind = TRIGGER_PRESSURE,
			    .stall_ms = 120,
			    .measured_ms = 2010,
			    .when = { .resource = RESOURCE_MEMORY } },
	};
	char line[1024];

	headline(&s, line, sizeof(line));
	assert_string_equal(line,
			    "/system.slice/api.service stalled on memory for 120 ms of 2010 ms "
			    "(some of it); the waits are not in these stacks, which are of CPU "
			    "time; none of its threads ran on a CPU in this time");
	add("sort_rows", "/usr/lib/libengine.so", 90, PHASE_DURING);
	add(NULL, NULL, 10, PHASE_DURING);
	summary.weight_ns[PHASE_DURING] = 40 * NSEC_PER_MSEC;
	s.stop_ns = 3 * NSEC_PER_SEC;
	s.reason.when = (struct rule_when){ .resource = RESOURCE_IO, .full = true };
	headline(&s, line, sizeof(line));
	assert_string_equal(line,
			    "/system.slice/api.service stalled on io for 120 ms of 2010 ms (all "
			    "of it); the waits are not in these stacks, which are of CPU time; it "
			    "was on a CPU for 40 ms of 3000 ms, by 2 samples only");
	summary.count[PHASE_DURING] = SUMMARY_FEW;
	headline(&s, line, sizeof(line));
	assert_non_null(strstr(line, "of CPU time; 90 % of its time on CPU was in sort_rows "
				     "(web)"));
	s.reason = (struct trigger_reason){ .kind = TRIGGER_REQUEST };
	headline(&s, line, sizeof(line));
	assert_non_null(strstr(line, "captured on request; 90 % of its time"));
	s.reason = (struct trigger_reason){ .kind = TRIGGER_REQUEST, .text = "p99 > 1 s" };
	headline(&s, line, sizeof(line));
	assert_non_null(strstr(line, "captured on request: p99 > 1 s; 90 % of its time"));
	s.reason = (struct trigger_reason){
		.kind = TRIGGER_QUIET, .cpu_us = 30999, .usual_us = 1500000, .measured_ms = 5040
	};
	headline(&s, line, sizeof(line));
	assert_non_null(strstr(line, ".service used 2 % of its usual CPU time in 5 s; the waits "
				     "are not in these stacks, which are of CPU time; 90 % of its "
				     "time"));
	s.reason.measured_ms = 9350;
	headline(&s, line, sizeof(line));
	assert_non_null(strstr(line, " in 9.4 s; "));
	s.reason = (struct trigger_reason){ .kind = TRIGGER_EXEC, .pid = 42, .comm = "node" };
	headline(&s, line, sizeof(line));
	assert_non_null(strstr(line, "node started in /system.slice/api.service (pid 42); "));
}

static void test_headline_unnamed(void **state)
{
	static char cgroup[] = "/a";
	struct session_result s = { .signals[SIGNAL_ONCPU] = &oncpu,
				    .cgroup = cgroup,
				    .reason.kind = TRIGGER_REQUEST };
	char line[256];

	add(NULL, NULL, 10, PHASE_DURING);
	headline(&s, line, sizeof(line));
	assert_string_equal(line, "/a captured on request; 100 % of its time on CPU was in unnamed "
				  "code (unknown module), by 1 sample only");
}

/* From 30 samples on the shares stand for themselves. */
static void test_headline_of_many(void **state)
{
	static char cgroup[] = "/a";
	struct session_result s = { .signals[SIGNAL_ONCPU] = &oncpu,
				    .cgroup = cgroup,
				    .reason.kind = TRIGGER_REQUEST };
	char line[256];

	for (int i = 0; i < 29; i++)
		add("spin", "/bin/x", 1, PHASE_DURING);
	for (int i = 0; i < 100; i++)
		add("spin", "/bin/x", 1, PHASE_BEFORE);
	headline(&s, line, sizeof(line));
	assert_non_null(strstr(line, ", by 29 samples only"));
	add("spin", "/bin/x", 1, PHASE_DURING);
	headline(&s, line, sizeof(line));
	assert_null(strstr(line, " only"));
}

/* Growth is reported before a constantly high share; what has no name is never the answer. */
static void test_headline_of_change(void **state)
{
	static char cgroup[] = "/a";
	struct session_result s = { .signals[SIGNAL_ONCPU] = &oncpu,
				    .cgroup = cgroup,
				    .reason.kind = TRIGGER_REQUEST };
	char line[256];

	for (int i = 0; i < 10; i++) {
		add("dictNext", "/bin/x", 5, PHASE_BEFORE);
		add("readQuery", "/bin/x", 4, PHASE_BEFORE);
		add("keysCommand", "/bin/x", 1, PHASE_BEFORE);
		add("dictNext", "/bin/x", 55, PHASE_DURING);
		add("keysCommand", "/bin/x", 38, PHASE_DURING);
		add(NULL, "/lib/libc.so.6", 7, PHASE_DURING);
	}
	headline(&s, line, sizeof(line));
	assert_non_null(strstr(line, "38 % of its time on CPU was in keysCommand (web), 10 % in "
				     "the baseline"));
	for (int i = 0; i < 10; i++)
		add(NULL, "/lib/libc.so.6", 900, PHASE_DURING);
	headline(&s, line, sizeof(line));
	assert_non_null(strstr(line, "5 % of its time on CPU was in dictNext (web)"));
}

/* Names of any length never leave the buffer. */
static void test_headline_long(void **state)
{
	static char cgroup[5000], fn[5000], module[5000];
	struct session_result s = { .signals[SIGNAL_ONCPU] = &oncpu,
				    .cgroup = cgroup,
				    .reason.kind = TRIGGER_REQUEST };
	char line[1024];

	memset(fn, 'f', sizeof(fn) - 1);
	memset(module, 'm', sizeof(module) - 1);
	memset(cgroup, 'c', 20);
	add(fn, module, 1, PHASE_DURING);
	headline(&s, line, sizeof(line));
	assert_true(strlen(line) < 600);
	memset(cgroup, 'c', sizeof(cgroup) - 1);
	headline(&s, line, sizeof(line));
	for (size_t space = 1; space < 64; space++) {
		_cleanup_free_ char *exact = malloc(space);

		assert_non_null(exact);
		session_headline_write(&summary, &s, NULL, &certain, exact, space);
		assert_non_null(memchr(exact, 0, space));
	}
}

UNIT_TESTS(session_digest)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_top_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_quality, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ends_in_leaf, setup, teardown),
		cmocka_unit_test_setup_teardown(test_before_table, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_place, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_self, setup, teardown),
		cmocka_unit_test_setup_teardown(test_headline_of_looks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_headline, setup, teardown),
		cmocka_unit_test_setup_teardown(test_headline_unnamed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_headline_of_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_headline_of_change, setup, teardown),
		cmocka_unit_test_setup_teardown(test_headline_long, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
