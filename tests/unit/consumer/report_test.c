/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions with known stacks, written to a file that the validator of the schemas reads. */
#include "unit.h"

#include <fcntl.h>
#include <json-c/json.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "consumer/report.h"
#include "consumer/reporter.h"
#include "shared/cleanup.h"
#include "shared/clock.h"
#include "shared/io.h"
#include "shared/macro.h"
#include "tests/unit/symbols/records_file.h"

#define KERNEL_BASE 0xffffffff81000000ULL
#define KERNEL_STEP 0x100u
#define FUNCTIONS   200
#define TEXT_BYTES  (16u << 20)
#define VALIDATOR   TROCAR_SOURCE "/tests/e2e/validate.py"

static struct host host;
static char dir[64], path[96], ksyms[96];
static struct lines lines = { .host = &host };
static struct symbols *symbols;

/* The kernel's function i; each fourth of a module, the names as long as the test wants them. */
static void write_ksyms(int name_bytes)
{
	FILE *f = fopen(ksyms, "we");
	char name[512];

	assert_non_null(f);
	for (unsigned int i = 0; i < FUNCTIONS; i++) {
		snprintf(name, sizeof(name), "fn_%03u_%0*d", i, MAX(name_bytes - 7, 1), 0);
		records_file_ksym(f, KERNEL_BASE + i * KERNEL_STEP, name, i % 4 ? "" : "xfs");
	}
	fclose(f);
}

static void begin(size_t queue_bytes, size_t max_bytes, int name_bytes)
{
	write_ksyms(name_bytes);
	lines.max_bytes = max_bytes;
	assert_int_equal(symbols_new(4u << 20, ksyms, &symbols), 0);
	assert_int_equal(output_new(path, queue_bytes, &lines.output), 0);
}

static int setup(void **state)
{
	strcpy(dir, "/tmp/trocar-report-XXXXXX");
	if (!mkdtemp(dir) || host_read(&host) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/lines", dir);
	snprintf(ksyms, sizeof(ksyms), "%s/ksyms", dir);
	return 0;
}

static int teardown(void **state)
{
	if (lines.output) {
		output_stop(lines.output, 100);
		output_free(lines.output);
	}
	symbols_free(TAKE_PTR(symbols));
	lines.output = NULL;
	unlink(path);
	unlink(ksyms);
	return rmdir(dir);
}

static struct session *new_session(const char *cgroup)
{
	struct session *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	stacks_init(&s->stacks);
	s->id = 0x1234;
	s->cgroup = strdup(cgroup);
	s->cgroup_id = 4242;
	s->reason.kind = TRIGGER_REQUEST;
	s->start_ns = clock_mono_ns();
	s->stop_ns = s->start_ns + 3 * NSEC_PER_SEC;
	s->expected = UINT64_MAX;
	return s;
}

/* Counts `count` samples of one stack: kernel functions first.. and then unknown user addresses. */
static void add(struct session *s, enum phase phase, unsigned int first, uint16_t kernel,
		uint16_t user, unsigned int count)
{
	struct hit *h = new_hit(kernel, user, &sample_unknown);

	for (uint16_t i = 0; i < kernel; i++)
		/* Within the function for the leaf, behind the call for its callers. */
		h->frames[i].offset =
			KERNEL_BASE + ((first + i) % FUNCTIONS) * KERNEL_STEP + (i ? 8 : 4);
	for (unsigned int i = 0; i < count; i++) {
		h->tid = 100 + i % 3;
		assert_int_equal(stacks_add(&s->stacks, h, phase, 10 * NSEC_PER_MSEC, NULL), 0);
	}
	s->phase[phase].emitted += count;
	s->phase[phase].attempted += count;
	free(h);
}

/* Ends the output and gives its lines, each within the wall; the schema's word on all of them. */
static json_object *finish(void)
{
	_cleanup_free_ char *text = NULL, *command = NULL;
	json_object *all = json_object_new_array();
	char *save = NULL;
	size_t bytes;

	output_stop(lines.output, 5000);
	output_free(TAKE_PTR(lines.output));
	assert_int_equal(io_read_file(AT_FDCWD, path, TEXT_BYTES, &text, &bytes), 0);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		json_object *root = json_tokener_parse(line);

		assert_true(strlen(line) + 1 <= lines.max_bytes);
		if (!root)
			fail_msg("not JSON: %s", line);
		json_object_array_add(all, root);
	}
	assert_true(asprintf(&command, "/usr/bin/python3 %s %s", VALIDATOR, path) > 0);
	/* NOLINTNEXTLINE(cert-env33-c) the words are the test's own */
	assert_int_equal(system(command), 0);
	return all;
}

static json_object *at(json_object *all, size_t i)
{
	return json_object_array_get_idx(all, i);
}

static const char *get(json_object *line, const char *key)
{
	return json_object_get_string(json_object_object_get(line, key));
}

static int64_t number(json_object *line, const char *key)
{
	return json_object_get_int64(json_object_object_get(line, key));
}

static void report(struct session *s)
{
	bool hurry = false;

	report_session(s, &lines, symbols, &hurry);
}

static void test_order(void **state)
{
	struct session *s = new_session("/system.slice/api.service");
	json_object *all, *frames, *end;

	begin(1u << 20, 8192, 12);
	assert_int_equal(output_start(lines.output), 0);
	add(s, PHASE_BEFORE, 50, 3, 0, 40);
	add(s, PHASE_DURING, 1, 2, 0, 5);
	add(s, PHASE_DURING, 8, 4, 2, 9);
	s->phase[PHASE_DURING].attempted += 2;
	s->phase[PHASE_DURING].lost[DROP_RING_FULL] = 2;
	report(s);
	all = finish();
	assert_int_equal(json_object_array_length(all), 4);
	/* During before before, the heavier first. */
	assert_int_equal(number(at(all, 0), "count"), 9);
	assert_string_equal(get(at(all, 0), "phase"), "during");
	assert_int_equal(number(at(all, 0), "threads"), 3);
	assert_int_equal(number(at(all, 0), "weight_ns"), 90000000);
	assert_int_equal(number(at(all, 1), "count"), 5);
	assert_int_equal(number(at(all, 2), "count"), 40);
	assert_string_equal(get(at(all, 2), "phase"), "before");
	frames = json_object_object_get(at(all, 0), "frames");
	assert_int_equal(json_object_array_length(frames), 6);
	assert_string_equal(get(json_object_array_get_idx(frames, 0), "fn"), "fn_008_00000");
	assert_string_equal(get(json_object_array_get_idx(frames, 0), "module"), "xfs");
	assert_int_equal(number(json_object_array_get_idx(frames, 0), "offset"), 4);
	assert_int_equal(number(json_object_array_get_idx(frames, 1), "offset"), 8);
	assert_string_equal(get(json_object_array_get_idx(frames, 5), "why"), "no_mapping");
	end = at(all, 3);
	assert_string_equal(get(end, "type"), "session.end");
	assert_string_equal(get(end, "session"), "0000000000001234");
	assert_string_equal(get(end, "verdict"), "partial");
	assert_int_equal(number(end, "duration_ms"), 3000);
	assert_non_null(strstr(get(end, "headline"), "/system.slice/api.service captured"));
	json_object_put(all);
	session_free(s);
}

static void test_empty(void **state)
{
	struct session *s = new_session("/idle");
	json_object *all;

	begin(1u << 20, 8192, 12);
	assert_int_equal(output_start(lines.output), 0);
	report(s);
	all = finish();
	assert_int_equal(json_object_array_length(all), 1);
	assert_string_equal(get(at(all, 0), "verdict"), "complete");
	assert_non_null(strstr(get(at(all, 0), "headline"), "nothing of it ran"));
	json_object_put(all);
	session_free(s);
}

static json_object *end_of(struct session *s)
{
	json_object *all, *end;

	begin(1u << 20, 8192, 12);
	assert_int_equal(output_start(lines.output), 0);
	report(s);
	all = finish();
	end = json_object_get(at(all, json_object_array_length(all) - 1));
	json_object_put(all);
	session_free(s);
	return end;
}

/* No sampler at all: the verdict, its reason and the headline say so, and never that nothing ran.
 */
static void test_unsampled(void **state)
{
	struct session *s = new_session("/api");
	json_object *end;

	s->cpus_missing = 2;
	s->unsampled_why = "nobody answers";
	end = end_of(s);
	assert_string_equal(get(end, "verdict"), "inconclusive");
	assert_string_equal(get(end, "verdict_reason"), "nobody answers");
	assert_non_null(strstr(get(end, "headline"), "no CPU was sampled: nobody answers"));
	assert_false(json_object_object_get_ex(end, "switches", NULL));
	json_object_put(end);
}

static void test_partly_sampled(void **state)
{
	struct session *s = new_session("/api");
	json_object *end;

	s->cpus_ticking = 1;
	s->cpus_missing = 1;
	s->unsampled_why = "one refused";
	end = end_of(s);
	assert_string_equal(get(end, "verdict"), "partial");
	assert_string_equal(get(end, "verdict_reason"), "one refused");
	json_object_put(end);
}

/* A signal that auto adds: its numbers, or the reason; the verdict does not hang on it. */
static void test_switches(void **state)
{
	struct session *s = new_session("/api");
	json_object *end, *switches;

	s->switches = (struct switches){ .wanted = true, .counted = true, .count = { 7, 3 } };
	end = end_of(s);
	assert_true(json_object_object_get_ex(end, "switches", &switches));
	assert_int_equal(number(switches, "voluntary"), 7);
	assert_int_equal(number(switches, "involuntary"), 3);
	json_object_put(end);
	teardown(state);
	assert_int_equal(setup(state), 0);
	s = new_session("/api");
	s->switches = (struct switches){ .wanted = true, .why = "nobody attaches" };
	end = end_of(s);
	assert_true(json_object_object_get_ex(end, "switches", &switches));
	assert_null(switches);
	assert_string_equal(get(end, "switches_reason"), "nobody attaches");
	assert_string_equal(get(end, "verdict"), "complete");
	json_object_put(end);
}

/* All parts of the one stack, put together: the frames as they were, none twice, none missing. */
static size_t check_parts(json_object *all, uint16_t frames)
{
	size_t parts = (size_t)number(at(all, 0), "parts"), next = 0;
	int64_t stack_id = number(at(all, 0), "stack_id");

	assert_int_equal(json_object_array_length(all), parts + 1);
	for (size_t i = 0; i < parts; i++) {
		json_object *list = json_object_object_get(at(all, i), "frames");

		assert_int_equal(number(at(all, i), "part"), i + 1);
		assert_int_equal(number(at(all, i), "parts"), parts);
		assert_int_equal(number(at(all, i), "stack_id"), stack_id);
		assert_true(json_object_array_length(list) > 0);
		for (size_t k = 0; k < json_object_array_length(list); k++, next++) {
			json_object *frame = json_object_array_get_idx(list, k);
			unsigned int n = ~0u;

			if (next >= STACK_FRAMES) {
				assert_string_equal(get(frame, "kind"), "user");
				continue;
			}
			assert_int_equal(sscanf(get(frame, "fn"), "fn_%u_", &n), 1);
			assert_int_equal(n, next + 3);
		}
	}
	assert_int_equal(next, frames);
	return parts;
}

static void test_parts(void **state)
{
	static const struct {
		size_t max_bytes;
		int name_bytes;
	} rows[] = { { 4096, 12 }, { 4096, 250 }, { 4096, 410 }, { 8192, 100 }, { 8192, 410 } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct session *s = new_session("/system.slice/api.service");
		json_object *all;

		begin(1u << 20, rows[i].max_bytes, rows[i].name_bytes);
		assert_int_equal(output_start(lines.output), 0);
		add(s, PHASE_DURING, 3, STACK_FRAMES, STACK_FRAMES, 4);
		report(s);
		all = finish();
		assert_true(check_parts(all, 2 * STACK_FRAMES) > 1);
		assert_int_equal(s->phase[PHASE_DURING].emitted, 4);
		json_object_put(all);
		session_free(s);
		symbols_free(TAKE_PTR(symbols));
		unlink(path);
	}
}

/* Nobody takes lines: what finds no room is in the ledger, and the sum still holds. */
static void test_queue_full(void **state)
{
	struct session *s = new_session("/system.slice/api.service");
	struct ledger *l = &s->phase[PHASE_DURING];
	struct output_stats stats;
	bool hurry = true;
	json_object *all;
	uint64_t count = 0;

	begin(64u << 10, 8192, 40);
	for (unsigned int i = 0; i < FUNCTIONS; i++)
		add(s, PHASE_DURING, i, 20, 20, i % 5 + 1);
	report_session(s, &lines, symbols, &hurry);
	assert_true(l->lost[DROP_QUEUE_FULL] > 0);
	assert_true(l->emitted > 0);
	assert_int_equal(l->attempted, l->emitted + ledger_lost(l));
	output_stats(lines.output, &stats);
	assert_true(stats.queued_bytes <= stats.queue_bytes);
	/* A quarter of the queue is the main thread's. */
	assert_true(stats.queued_bytes <= stats.queue_bytes / 4 * 3 + 2 * 8192);
	/* What the ledger calls emitted is what arrives, although lines are refused by the batch.
	 */
	assert_int_equal(output_start(lines.output), 0);
	all = finish();
	for (size_t i = 0; i < json_object_array_length(all); i++)
		if (!strcmp(get(at(all, i), "type"), "stack"))
			count += number(at(all, i), "count");
	assert_int_equal(count, l->emitted);
	json_object_put(all);
	session_free(s);
}

/* No line can hold even the head: each stack is accounted for, and its lines count as dropped. */
static void test_too_long(void **state)
{
	struct session *s = new_session("/system.slice/api.service");
	struct ledger *l = &s->phase[PHASE_DURING];
	struct output_stats stats;

	begin(1u << 20, 300, 12);
	add(s, PHASE_DURING, 1, 3, 0, 5);
	add(s, PHASE_DURING, 7, 3, 0, 2);
	report(s);
	assert_int_equal(l->emitted, 0);
	assert_int_equal(l->lost[DROP_QUEUE_FULL], 7);
	output_stats(lines.output, &stats);
	assert_true(stats.dropped_lines >= 3);
	assert_int_equal(stats.queued_bytes, 0);
	session_free(s);
}

/* The last line is never lost to its own length: names, paths and labels as long as they may be. */
static void test_end_long(void **state)
{
	static const size_t walls[] = { 4096, 8192 };

	for (size_t k = 0; k < ARRAY_SIZE(walls); k++) {
		struct session *s =
			new_session("/kubepods.slice/kubepods-burstable.slice/pod.slice");
		json_object *all, *end;
		char module_path[300];

		begin(1u << 20, walls[k], 400);
		assert_int_equal(output_start(lines.output), 0);
		for (unsigned int i = 0; i < 12; i++) {
			struct hit *h = new_hit(0, 1, NULL);

			add(s, PHASE_DURING, 10 * i, 2, 0, 3);
			snprintf(module_path, sizeof(module_path), "/nonexistent/%u/%0250d.so", i,
				 0);
			assert_int_equal(symbols_module(symbols, 1, i + 1, module_path, false,
							&h->frames[0].module),
					 0);
			assert_int_equal(stacks_add(&s->stacks, h, PHASE_DURING, 1, NULL), 0);
			s->phase[PHASE_DURING].emitted++;
			s->phase[PHASE_DURING].attempted++;
			free(h);
		}
		report(s);
		all = finish();
		end = at(all, json_object_array_length(all) - 1);
		assert_string_equal(get(end, "type"), "session.end");
		assert_true(json_object_array_length(json_object_object_get(end, "top")) > 0);
		json_object_put(all);
		session_free(s);
		symbols_free(TAKE_PTR(symbols));
		unlink(path);
	}
}

/* The thread: sessions in the order they were handed over, all written at the stop. */
static void test_reporter(void **state)
{
	struct reporter *reporter;
	json_object *all;
	int64_t last = -1;
	size_t ends = 0;

	begin(1u << 20, 8192, 40);
	assert_int_equal(output_start(lines.output), 0);
	assert_int_equal(reporter_new(&lines, symbols, 97, &reporter), 0);
	for (unsigned int i = 0; i < 20; i++) {
		struct session *s = new_session("/system.slice/api.service");

		s->cgroup_id = i + 1;
		for (unsigned int k = 0; k < 10; k++)
			add(s, PHASE_DURING, i + k, 10, 5, 2);
		reporter_put(reporter, s);
	}
	reporter_stop(reporter, 5000);
	all = finish();
	for (size_t i = 0; i < json_object_array_length(all); i++) {
		if (strcmp(get(at(all, i), "type"), "session.end") != 0)
			continue;
		assert_true(number(at(all, i), "cgroup_id") > last || !ends);
		last = number(at(all, i), "cgroup_id");
		ends++;
	}
	assert_int_equal(ends, 20);
	assert_int_equal(json_object_array_length(all), 20 * 11);
	json_object_put(all);
}

/* With an output that nobody reads the stop takes no longer than it was given. */
static void test_reporter_stuck(void **state)
{
	uint64_t started = clock_mono_ns();
	struct reporter *reporter;

	begin(64u << 10, 8192, 100);
	assert_int_equal(reporter_new(&lines, symbols, 97, &reporter), 0);
	for (unsigned int i = 0; i < 3; i++) {
		struct session *s = new_session("/system.slice/api.service");

		for (unsigned int k = 0; k < 100; k++)
			add(s, PHASE_DURING, i + k, 40, 5, 2);
		reporter_put(reporter, s);
	}
	reporter_stop(reporter, 300);
	assert_true(clock_mono_ns() - started < 2 * NSEC_PER_SEC);
	reporter_stop(NULL, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_empty, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unsampled, setup, teardown),
		cmocka_unit_test_setup_teardown(test_partly_sampled, setup, teardown),
		cmocka_unit_test_setup_teardown(test_switches, setup, teardown),
		cmocka_unit_test_setup_teardown(test_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_queue_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_long, setup, teardown),
		cmocka_unit_test_setup_teardown(test_end_long, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reporter, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reporter_stuck, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
