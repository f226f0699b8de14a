/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A kind of evidence is added by a few files and rows. The folder dummy/ has all of them, for a
 * signal that no version has: its part of a session, its line with the line's schema, its section
 * of the text report. It stands before the product's tree in the include path of this program and
 * of dummy_section_test; nothing else of the product knows it. A session runs with it here, from
 * its trigger to its last line.
 */
#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include <ftw.h>

#include "consumer/sampling/drain.h"
#include "consumer/watch/binding.h"
#include "shared/tools/clock.h"

#define SAMPLES 8 /* of each CPU */

static struct fake *fake;
static struct watch *watch;
static const struct rule *rule;

static int setup(void **state)
{
	fake = fake_new();
	if (!fake)
		return 0;
	cgroups_learn(&fake->a.cgroups, 1ULL << 40, "/unit/signals");
	fake_rules(fake,
		   "{\"version\":1,\"rules\":[{\"name\":\"api\",\"match\":{\"comm\":\"node\"},"
		   "\"capture\":{\"signals\":[\"oncpu\",\"runtime\"]}}]}");
	rule = &fake->a.active.set->rules->rules[0];
	assert_int_equal(watch_get(&fake->a.watches, 1ULL << 40, 0, &watch), 0);
	assert_int_equal(binding_add_cgroup(watch, rule), 0);
	return 0;
}

static int teardown(void **state)
{
	if (fake)
		fake_free(fake);
	return 0;
}

static int files;

static int count_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	files += type == FTW_F;
	return 0;
}

#define FILES_MAX 20

/* With a BPF program, its map's rows and documents it would be some ten more. */
static void test_files(void **state)
{
	files = 0;
	assert_int_equal(nftw(TROCAR_SOURCE "/tests/unit/consumer/signals/dummy", count_file, 8, 0),
			 0);
	assert_in_range(files, 6, FILES_MAX);
}

static void put_samples(void)
{
	struct {
		struct sample head;
		uint64_t kernel[2];
	} s = { .head = { .time_ns = clock_mono_ns(),
			  .start_ns = 5,
			  .slot = watch->slot,
			  .epoch = watch->epoch,
			  .tgid = 100,
			  .tid = 100,
			  .flags = SAMPLE_CAPTURE | SAMPLE_KTHREAD,
			  .kernel_frames = 2,
			  .comm = "node" },
		.kernel = { 0xffffffff81000000ULL, 0xffffffff81000100ULL } };

	for (; s.head.seq < SAMPLES; s.head.seq++)
		for (s.head.cpu = 0; s.head.cpu < fake->a.pins.abi.cpus_possible; s.head.cpu++)
			fake_put(&fake->samples, &s, sizeof(s));
	fake_counters(fake, watch->slot,
		      (struct slot_counters){ .attempted = SAMPLES, .emitted = SAMPLES });
}

static bool names_signal(json_object *list, const char *name)
{
	for (size_t i = 0; i < json_object_array_length(list); i++)
		if (!strcmp(json_object_get_string(json_object_array_get_idx(list, i)), name))
			return true;
	return false;
}

static int64_t sum_weights(json_object *lines, const char *signal)
{
	int64_t sum = 0;

	for (size_t i = 0; i < json_object_array_length(lines); i++) {
		json_object *line = json_object_array_get_idx(lines, i);

		if (!strcmp(fake_text(line, "type"), "stack") &&
		    !strcmp(fake_text(line, "signal"), signal))
			sum += json_object_get_int64(json_object_object_get(line, "count"));
	}
	return sum;
}

static void test_session(void **state)
{
	const struct trigger trigger = {
		.watch = watch,
		.rule = rule,
		.reason = { .kind = TRIGGER_EXEC, .pid = 100, .comm = "node" }
	};
	int64_t cpus = fake ? fake->a.pins.abi.cpus_possible : 0, taken = cpus * SAMPLES;
	_cleanup_json_ json_object *started = NULL, *ended = NULL, *lines = NULL, *line = NULL;
	struct trigger_held held;
	struct session *s;
	json_object *ledger;

	if (!fake)
		skip();
	assert_int_equal(trigger_fire(&fake->a.triggers, &trigger, &s, &held), 0);
	started = fake_last(fake, "session.start");
	assert_true(names_signal(json_object_object_get(started, "signals"), "runtime"));
	assert_null(json_object_object_get(started, "signals_missing"));
	put_samples();
	fake_drain_samples(fake);
	session_end(&fake->a.sessions, s);
	triggers_step(&fake->a.triggers, clock_mono_ns() + NSEC_PER_SEC);
	ended = fake_last(fake, "session.end");
	ledger = json_object_object_get(json_object_object_get(ended, "ledger"), "runtime");
	assert_int_equal(json_object_get_int64(json_object_object_get(ledger, "attempted")), taken);
	assert_int_equal(json_object_get_int64(json_object_object_get(ledger, "emitted")),
			 taken / 4 * 3);
	assert_string_equal(fake_text(ended, "verdict"), "partial");
	line = fake_last(fake, "dummy");
	assert_int_equal(json_object_get_int64(json_object_object_get(line, "seen")), taken);
	lines = fake_lines(fake);
	assert_int_equal(sum_weights(lines, "oncpu"), taken);
	assert_int_equal(sum_weights(lines, "runtime"), taken / 4 * 3);
}

/* Where a signal has no program, the session reports it and runs with the others. */
static void test_unknown(void **state)
{
	struct signal *s;

	if (!fake)
		skip();
	s = signals_new(SIGNAL_FAULT, &fake->a.sessions.host, NULL);
	assert_non_null(s);
	assert_null(s->kind);
	assert_string_equal(s->off_reason, "this version has no program for it");
	signals_free(s);
}

UNIT_TESTS(signals)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test_setup_teardown(test_session, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unknown, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
