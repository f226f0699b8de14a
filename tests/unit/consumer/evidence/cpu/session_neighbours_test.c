/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines about neighbours, against their schema. */
#include "consumer/evidence/cpu/session_neighbours.h"
#include "consumer/evidence/evidence_kinds.h"

#include <string.h>

#include "shared/tools/macro.h"
#include "tests/unit/consumer/testing/report_testing.h"

static void name_one(struct neighbours *n, const char *path, uint64_t cpu_ms)
{
	struct neighbour_time *t = &n->items[n->count++];

	*t = (struct neighbour_time){ .row = { .cgroup_id = 4711 + n->count,
					       .path = path ? strdup(path) : NULL,
					       .unnamed = path ? NULL : "gone" },
				      .cpu_ns = cpu_ms * NSEC_PER_MSEC,
				      .name = "run-r12.scope",
				      .comm = "stress" };
	n->others_ns += t->cpu_ns;
}

/* The session's signal, with evidence from the test. */
static struct signal *new_signal(struct session_result *s)
{
	static const struct signal_host no_host = { .kinds = evidence_kinds };
	const struct signal_target target = {};
	struct signal *signal = signals_new(SIGNAL_NEIGHBOURS, &no_host, &target);

	assert_non_null(signal);
	s->signals[SIGNAL_NEIGHBOURS] = signal;
	return signal;
}

static void test_lines(void **state)
{
	struct session_result *s = report_testing_new_session("/system.slice/api.service");
	struct neighbours counted, *n = &counted;
	struct signal *signal = new_signal(s);
	json_object *all, *cpu;
	char deep[4000];

	report_testing_begin(1u << 20, 8192, 12);
	assert_int_equal(output_queue_start(report_testing_lines.output), 0);
	memset(deep, '\x01', sizeof(deep)); /* six bytes each in the line */
	deep[0] = '/';
	deep[sizeof(deep) - 1] = 0;
	*n = (struct neighbours){ .cpus = 2,
				  .lasted_ns = 3 * NSEC_PER_SEC,
				  .items = calloc(NEIGHBOURS_NAMED, sizeof(*n->items)) };
	assert_non_null(n->items);
	name_one(n, "/batch.slice", 4800);
	name_one(n, NULL, 600);
	name_one(n, deep, 6);
	n->rest = 3;
	n->rest_ns = 60 * NSEC_PER_MSEC;
	n->others_ns += n->rest_ns + 40 * NSEC_PER_MSEC;
	n->unlisted_ns = 40 * NSEC_PER_MSEC;
	n->own_ns = 300 * NSEC_PER_MSEC;
	n->own_cpus = 1;
	n->beside_ns = 2700 * NSEC_PER_MSEC;
	n->items[0].beside_ns = 2600 * NSEC_PER_MSEC;
	n->idle_ns = 154 * NSEC_PER_MSEC;
	signal->off_reason = NULL;
	signal->evidence = n;
	report_testing_report(s);
	all = report_testing_finish();
	assert_int_equal(json_object_array_length(all), 5);
	assert_string_equal(get(at(all, 0), "type"), "neighbour");
	assert_string_equal(get(at(all, 0), "neighbour"), "/batch.slice");
	assert_string_equal(get(at(all, 0), "comm"), "stress");
	assert_int_equal(number(at(all, 0), "cpu_ms"), 4800);
	assert_string_equal(get(at(all, 0), "share"), "0.800");
	assert_int_equal(number(at(all, 0), "beside_ms"), 2600);
	assert_null(json_object_object_get(at(all, 1), "neighbour"));
	assert_string_equal(get(at(all, 1), "name"), "run-r12.scope");
	assert_int_equal(number(at(all, 3), "others"), 3);
	assert_int_equal(number(at(all, 3), "cpu_ms"), 60);
	cpu = json_object_object_get(at(all, 4), "cpu");
	assert_int_equal(number(cpu, "cpus"), 2);
	assert_int_equal(number(cpu, "own_ms"), 300);
	assert_int_equal(number(cpu, "own_cpus"), 1);
	assert_int_equal(number(cpu, "beside_ms"), 2700);
	assert_int_equal(number(cpu, "others_ms"), 5506);
	assert_int_equal(number(cpu, "idle_ms"), 154);
	assert_int_equal(number(cpu, "unseen_ms"), 40);
	assert_int_equal(number(cpu, "unlisted_ms"), 40);
	assert_false(json_object_object_get_ex(cpu, "out_of_scope_ms", NULL));
	json_object_put(all);
	neighbours_done(n);
	session_result_free(s);
}

/* What should have been counted and was not is null with the reason. */
static void test_not_counted(void **state)
{
	struct session_result *s = report_testing_new_session("/idle");
	json_object *all, *cpu;

	report_testing_begin(1u << 20, 8192, 12);
	assert_int_equal(output_queue_start(report_testing_lines.output), 0);
	new_signal(s)->off_reason = "nothing ticks";
	report_testing_report(s);
	all = report_testing_finish();
	assert_int_equal(json_object_array_length(all), 1);
	assert_true(json_object_object_get_ex(at(all, 0), "cpu", &cpu));
	assert_null(cpu);
	assert_string_equal(get(at(all, 0), "cpu_reason"), "nothing ticks");
	json_object_put(all);
	session_result_free(s);
}

/* Evidence without a request is absent. */
static void test_not_wanted(void **state)
{
	struct session_result *s = report_testing_new_session("/idle");
	json_object *all;

	report_testing_begin(1u << 20, 8192, 12);
	assert_int_equal(output_queue_start(report_testing_lines.output), 0);
	report_testing_report(s);
	all = report_testing_finish();
	assert_int_equal(json_object_array_length(all), 1);
	assert_false(json_object_object_get_ex(at(all, 0), "cpu", NULL));
	assert_false(json_object_object_get_ex(at(all, 0), "cpu_reason", NULL));
	json_object_put(all);
	session_result_free(s);
}

UNIT_TESTS(session_neighbours)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lines, report_testing_setup,
						report_testing_teardown),
		cmocka_unit_test_setup_teardown(test_not_counted, report_testing_setup,
						report_testing_teardown),
		cmocka_unit_test_setup_teardown(test_not_wanted, report_testing_setup,
						report_testing_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
