/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions with facts, written to a file that the validator of the schemas reads. */
#include "tests/unit/consumer/testing/report_testing.h"

#include "consumer/answer/session_facts.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/facts/facts_testing.h"

static char own[] = "/api";

static struct facts_phases *new_facts(void)
{
	struct facts_phases *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	for (int i = 0; i < FACTS_SOURCE_COUNT_; i++)
		p->place.source[i].path = strdup(own);
	facts_testing_read(p, FACTS_TRIGGER, 6500, FACTS_FILE_V2_CPU_STAT, "throttled_usec 0\n");
	facts_testing_read(p, FACTS_END, 8500, FACTS_FILE_V2_CPU_STAT, "throttled_usec 1900000\n");
	facts_testing_read(p, FACTS_TRIGGER, 6500, FACTS_FILE_V2_CPU_MAX, "40000 100000\n");
	return p;
}

static struct session_result *new_session(enum resource resource)
{
	struct session_result *s = report_testing_new_session(own);

	s->reason = (struct trigger_reason){ .kind = TRIGGER_PRESSURE,
					     .when = { .resource = resource },
					     .stall_ms = 400,
					     .measured_ms = 1000 };
	return s;
}

/* A line for each source, before session.end; the cause is the first finding there, and first in
 * the headline. */
static void test_lines(void **state)
{
	static const char cause[] = "CPU quota of 40 % used up: 1.90 s throttled in 2.0 s";
	struct session_result *s = new_session(RESOURCE_CPU);
	json_object *all, *end, *first;

	s->facts = new_facts();
	report_testing_begin(1u << 20, 8192, 12);
	assert_int_equal(output_queue_start(report_testing_lines.output), 0);
	report_testing_report(s);
	all = report_testing_finish();
	assert_int_equal(json_object_array_length(all), FACTS_SOURCE_COUNT_ + 1);
	for (size_t i = 0; i < FACTS_SOURCE_COUNT_; i++) {
		assert_string_equal(get(at(all, i), "type"), "facts");
		assert_string_equal(get(at(all, i), "source"),
				    facts_source_name((enum facts_source)i));
		assert_string_equal(get(at(all, i), "session"), "0000000000001234");
		assert_string_equal(get(at(all, i), "cgroup"), own);
	}
	end = at(all, FACTS_SOURCE_COUNT_);
	first = json_object_array_get_idx(json_object_object_get(end, "findings"), 0);
	assert_string_equal(get(first, "says"), cause);
	assert_string_equal(get(first, "level"), "certain");
	assert_memory_equal(get(end, "headline"), cause, strlen(cause));
	assert_non_null(strstr(get(end, "headline"), "in 2.0 s; /api stalled on cpu for 400 ms"));
	json_object_put(all);
	session_result_free(s);
}

/* A throttled cgroup that waits for a disk does not wait because of its quota. */
static void test_other_resource(void **state)
{
	struct session_result *s = new_session(RESOURCE_IO);
	char text[CAUSES_TEXT_BYTES];
	enum cause_id id;

	s->facts = new_facts();
	assert_false(session_facts_cause(s, &id, text));
	session_result_free(s);
	s = new_session(RESOURCE_CPU);
	assert_false(session_facts_cause(s, &id, text));
	s->facts = new_facts();
	s->reason = (struct trigger_reason){ .kind = TRIGGER_REQUEST };
	assert_true(session_facts_cause(s, &id, text));
	session_result_free(s);
}

UNIT_TESTS(session_facts)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_other_resource),
	};

	return cmocka_run_group_tests(tests, report_testing_setup, report_testing_teardown);
}
