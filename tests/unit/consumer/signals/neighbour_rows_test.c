/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of lines `neighbour`, on a tree of directories. */
#include "consumer/signals/neighbour_rows.h"

#include "consumer/cgroup/cgroup_names.h"
#include "shared/tools/cleanup.h"
#include "tests/unit/consumer/testing/cgroups_testing.h"

#define GONE 0x7fffffffff00ull /* ids of no directory */

struct item {
	struct neighbour_row row;
	uint64_t ns;
};

static struct cgroup_names known;
static struct item rest; /* of the last rows */

static int setup_rows(void **state)
{
	cgroup_names_init(&known);
	return setup(state);
}

static int teardown_rows(void **state)
{
	cgroup_names_done(&known);
	return teardown(state);
}

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return x->row.cgroup_id < y->row.cgroup_id ? -1 : x->row.cgroup_id > y->row.cgroup_id;
}

static void add_item(void *sum, const void *more)
{
	((struct item *)sum)->ns += ((const struct item *)more)->ns;
}

static size_t make_rows(struct item *items, size_t count, size_t named)
{
	const struct neighbour_rows_kind kind = {
		.bytes = sizeof(struct item),
		.named = named,
		.compare = compare_items,
		.add = add_item,
	};
	_cleanup_(neighbour_rows_source_done) struct neighbour_rows_source source;
	const struct neighbour_names names = neighbour_rows_names(&source, &known, &cgroups);

	rest = (struct item){};
	return neighbour_rows_make(items, count, &kind, &names, &rest);
}

static void done(struct item *items, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(items[i].row.path);
}

/* Of a cgroup that is found only after the session ended, the user is found too. */
static void test_found_later(void **state)
{
	struct item items[2] = { { .ns = 1 }, { .row.cgroup_id = GONE, .ns = 2 } };
	uint64_t id;

	if (geteuid() != 0)
		skip();
	make("/u");
	give("/u", 61234);
	id = make("/u/young");
	items[0].row.cgroup_id = id;
	neighbour_rows_ask(items, 2, sizeof(items[0]), &known, &cgroups);
	assert_true(cgroup_names_await(&known, &cgroups));
	look_up(id);
	assert_int_equal(make_rows(items, 2, 2), 2);
	assert_int_equal(items[0].row.cgroup_id, GONE);
	assert_null(items[0].row.path);
	assert_non_null(strstr(items[0].row.unnamed, "ended"));
	assert_string_equal(items[1].row.path, "/u/young");
	assert_null(items[1].row.unnamed);
	assert_int_equal(items[1].row.uid, 61234);
	done(items, 2);
}

/*
 * The paths of the many are found by one look after the session ended, and removed ones are known
 * by the directories above them: both are added up before the cut.
 */
static void test_many_of_one(void **state)
{
	struct item items[41] = {};
	uint64_t above[CGROUP_NAMES_LEVELS] = {}, user;
	size_t n = 0;
	char name[32];

	if (geteuid() != 0)
		skip();
	make("/a");
	above[0] = cgroups.root_id; /* as good as any that is not the user's */
	user = above[1] = make("/a/u");
	give("/a/u", 61234);
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "/a/u/%d", i);
		items[n++] = (struct item){ .row.cgroup_id = make(name), .ns = 10 };
		items[n++] = (struct item){ .row.cgroup_id = GONE + (uint64_t)i, .ns = 1 };
		cgroup_names_note_above(&known, &cgroups, GONE + (uint64_t)i, above);
	}
	items[n++] = (struct item){ .row.cgroup_id = make("/batch"), .ns = 100 };
	neighbour_rows_ask(items, n, sizeof(items[0]), &known, &cgroups);
	look_up(user);
	assert_int_equal(make_rows(items, n, 1), 1);
	assert_int_equal(rest.row.cgroups, 1);
	assert_int_equal(rest.ns, 100);
	assert_string_equal(items[0].row.path, "/a/u");
	assert_int_equal(items[0].row.cgroup_id, user);
	assert_int_equal(items[0].row.uid, 61234);
	assert_int_equal(items[0].row.cgroups, 40);
	assert_int_equal(items[0].ns, 220);
	assert_null(items[1].row.path); /* behind those that are named */
	assert_int_equal(items[1].ns, 100);
	done(items, 1);
}

/*
 * Hundreds of small jobs below one slice are one neighbour, as large as they are together; those
 * that are large alone keep their rows, and a few siblings are not added up.
 */
static void test_many_of_one_parent(void **state)
{
	struct item items[64] = {};
	char name[32], says[NEIGHBOUR_SAYS_BYTES];
	size_t n = 0;

	make("/batch");
	make("/few");
	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "/batch/%d", i);
		items[n++] = (struct item){ .row.cgroup_id = make(name), .ns = 10 };
	}
	items[n++] = (struct item){ .row.cgroup_id = make("/batch/large"), .ns = 500 };
	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "/few/%d", i);
		items[n++] = (struct item){ .row.cgroup_id = make(name), .ns = 20 };
	}
	items[n++] = (struct item){ .row.cgroup_id = make("/web"), .ns = 300 };
	for (size_t i = 0; i < n; i++)
		look_up(items[i].row.cgroup_id);
	assert_int_equal(make_rows(items, n, 4), 4);
	assert_string_equal(items[0].row.path, "/batch/large");
	assert_string_equal(items[1].row.path, "/batch");
	assert_int_equal(items[1].row.cgroups, 40);
	assert_int_equal(items[1].row.uid, 0);
	assert_int_equal(items[1].ns, 400);
	neighbour_rows_say(&items[1].row, says);
	assert_string_equal(says, "40 cgroups in /batch");
	neighbour_rows_say(&items[2].row, says);
	assert_string_equal(says, "/web");
	assert_string_equal(neighbour_rows_name("/"),
			    "kernel threads and processes outside of any service");
	assert_string_equal(items[2].row.path, "/web");
	assert_int_equal(items[3].row.cgroups, 1);
	assert_int_equal(items[3].ns, 20);
	assert_int_equal(rest.row.cgroups, 2);
	done(items, 4);
}

UNIT_TESTS(neighbour_rows)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_found_later, setup_rows, teardown_rows),
		cmocka_unit_test_setup_teardown(test_many_of_one, setup_rows, teardown_rows),
		cmocka_unit_test_setup_teardown(test_many_of_one_parent, setup_rows, teardown_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
