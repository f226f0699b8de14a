/* SPDX-License-Identifier: BSD-2-Clause */
/* What is written of unwinding: the line and the object of the status method. */
#include "tests/unit/consumer/testing/unwind_testing.h"

#include <errno.h>

#include "consumer/process/unwind_events.h"
#include "consumer/process/unwind_plan.h"
#include "shared/json/jsonw.h"

static struct unwind_testing t;

static int setup(void **state)
{
	unwind_testing_start(&t, UNWIND_TESTING_ELEMENTS);
	return 0;
}

static int teardown(void **state)
{
	unwind_testing_stop(&t);
	return 0;
}

static bool says(const struct jsonw *w, const char *text)
{
	return memmem(w->data, w->bytes, text, strlen(text)) != NULL;
}

static void test_status(void **state)
{
	struct totals totals = { .unwind_stop_reasons = { [UNWIND_END_COMPLETE] = 4711 } };
	const struct code_names_stats names = { .evicted = 815 };
	struct jsonw w;

	if (!t.fake)
		skip();
	unwind_testing_published(&t, 100, 0, 77);
	jsonw_init(&w, 65536);
	jsonw_object(&w, NULL);
	unwind_events_write_status(&t.fake->a.unwind.tables, &totals, &names, &w);
	jsonw_object_end(&w);
	assert_int_equal(jsonw_end(&w), 0);
	assert_true(says(&w, "\"tables_used\":1"));
	assert_true(says(&w, program_invocation_short_name));
	assert_true(says(&w, ":4711"));
	assert_true(says(&w, "\"evicted\":815"));
	jsonw_done(&w);
}

/* Without tables there is no such object. */
static void test_status_none(void **state)
{
	struct process_unwind none = { 0 };
	struct jsonw w;

	jsonw_init(&w, 4096);
	jsonw_object(&w, NULL);
	process_unwind_write_status(&none, &w);
	jsonw_object_end(&w);
	assert_int_equal(jsonw_end(&w), 0);
	assert_false(says(&w, "unwind"));
	jsonw_done(&w);
}

/* Modules without rows: a bounded number by name, the rest counted. */
static void test_without_rows(void **state)
{
	struct mapping anonymous = { .start = 0x1000, .end = 0x2000 };
	struct process *p;
	json_object *line, *rows;

	if (!t.fake)
		skip();
	assert_int_equal(symbols_module(t.fake->a.symbols, &(struct file_identity){ 0 }, "[anon]",
					true, &anonymous.module),
			 0);
	p = unwind_testing_mapped(&t, 100, anonymous);
	mappings_done(&p->maps);
	p->maps.count = 20;
	p->maps.items = calloc(20, sizeof(*p->maps.items));
	assert_non_null(p->maps.items);
	for (uint64_t i = 0; i < 20; i++) {
		p->maps.items[i] = anonymous;
		p->maps.items[i].start += i << 16;
		p->maps.items[i].end += i << 16;
	}
	unwind_testing_fill(&t, 77, 0, 20);
	unwind_testing_renew(&t, p);
	assert_true(unwind_testing_run(&t, unwind_testing_has_table, p, 20000));
	line = fake_last(t.fake, "process.unwind");
	assert_string_equal(fake_text(line, "unwind"), "fp");
	rows = json_object_object_get(line, "without_rows");
	assert_int_equal(json_object_array_length(rows), 16);
	assert_string_equal(fake_text(json_object_array_get_idx(rows, 0), "reason"), "anonymous");
	assert_string_equal(fake_text(line, "without_rows_omitted"), "4");
	json_object_put(line);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_TESTS(unwind_events)
{
	const struct CMUnitTest tests[] = {
		EACH(test_status),
		EACH(test_status_none),
		EACH(test_without_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
