/* SPDX-License-Identifier: BSD-2-Clause */
/* A tree of a user, who blocks lookups in it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "consumer/cgroup/cgroups_walk.h"
#include "consumer/cgroup/lookup_pool.h"
#include "shared/tools/clock.h"
#include "tests/unit/consumer/testing/cgroups_testing.h"

#define USER   1234
#define MANY   20000
#define WAIT_S 10

struct met {
	size_t count;
	bool deep; /* "/a/u/x/y" */
};

static int meet(void *context, const char *path, uint64_t id)
{
	struct met *m = context;

	m->count++;
	m->deep = m->deep || !strcmp(path, "/a/u/x/y");
	return 0;
}

/* A whole walk; *ret_parts in so many parts, each of one cgroup. */
static int walk_all(struct met *m, unsigned int *ret_parts)
{
	struct cgroups_walk *walk;
	int r = cgroups_walk_new(&cgroups, meet, m, &walk);

	*ret_parts = 0;
	if (r != 0)
		return r;
	while ((r = cgroups_walk_step(walk, clock_mono_ns())) > 0)
		(*ret_parts)++;
	cgroups_walk_free(walk);
	return r;
}

static void hold(struct lookup_call *w)
{
	const int *gate = *(int **)(w + 1);
	char byte;

	assert_int_equal(read(gate[0], &byte, 1), 1);
}

static void let_go(struct lookup_call *w)
{
	free(w);
}

/* A look of that user's which is not back before a byte comes. */
static void hold_up(const int *gate, uint64_t owner)
{
	struct lookup_call *w = calloc(1, sizeof(*w) + sizeof(gate));

	assert_non_null(w);
	*w = (struct lookup_call){ .run = hold, .free = let_go, .owner = owner };
	memcpy(w + 1, &gate, sizeof(gate));
	assert_int_equal(lookup_pool_run(cgroups.lookups, w), -EBUSY);
}

/* As cgroups_id, again where no CPU was free in time. */
static int id_in_time(const char *path, uint64_t *ret_id)
{
	int r = -EBUSY;

	for (int i = 0; i < 100 && r == -EBUSY; i++) {
		r = cgroups_id(&cgroups, path, ret_id);
		if (r == -EBUSY)
			usleep(10000);
	}
	return r;
}

/* While a user blocks lookups in his tree, everything else is seen, and his is counted. */
static void test_held_up(void **state)
{
	uint64_t id = 0, deep;
	struct met m = {};
	unsigned int parts;
	int gate[2];

	if (geteuid() != 0)
		skip();
	make("/a");
	make("/a/u");
	give("/a/u", USER);
	make("/a/u/x");
	deep = make("/a/u/x/y");
	put_file("/a/u/x/cgroup.procs", "1\n");
	make("/b");
	assert_int_equal(cgroups_start(&cgroups), 0);
	assert_int_equal(id_in_time("/a/u/x/y", &id), 0);
	assert_int_equal(id, deep);
	assert_int_equal(id_in_time("/a/u/none", &id), -ENOENT);

	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	hold_up(gate, USER);
	assert_int_equal(walk_all(&m, &parts), 0);
	assert_int_equal(m.count, 4); /* "/", "/a", "/a/u", "/b" */
	assert_int_equal(cgroups.left.unread.count, 1);
	assert_int_equal(cgroups.left.unread.error, -EBUSY);
	assert_string_equal(cgroups.left.unread.example, "/a/u");
	assert_int_equal(cgroups_id(&cgroups, "/a/u/x", &id), -EBUSY);
	assert_int_equal(cgroups_occupied(&cgroups, "/a/u/x"), -EBUSY);
	assert_int_equal(cgroups_id(&cgroups, "/a/u", &id), 0); /* in root's directory */
	assert_int_equal(cgroups_id(&cgroups, "/b", &id), 0);

	assert_int_equal(write(gate[1], "x", 1), 1);
	for (int i = 0; i < 100 && m.count != 6; i++) {
		usleep(10000);
		m = (struct met){};
		assert_int_equal(walk_all(&m, &parts), 0);
	}
	assert_int_equal(m.count, 6);
	assert_true(m.deep);
	assert_int_equal(cgroups.left.unread.count, 0);
	close(gate[0]);
	close(gate[1]);
}

/*
 * A listing that comes late counts for the walks that follow, until cgroup_lookup_walked; its
 * content is reported in parts.
 */
static void test_late_walk(void **state)
{
	struct met m = {};
	unsigned int parts = 0;
	char name[32];

	if (geteuid() != 0)
		skip();
	make("/u");
	give("/u", USER);
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "/u/%d", i);
		make(name);
	}
	assert_int_equal(cgroups_start(&cgroups), 0);
	for (int i = 0; i < 100 * WAIT_S && m.count < MANY + 2; i++) {
		m = (struct met){};
		assert_int_equal(walk_all(&m, &parts), 0);
		assert_true(m.count == 2 || m.count == MANY + 2);
		usleep(10000);
	}
	assert_int_equal(m.count, MANY + 2);
	assert_true(parts >= MANY);
	cgroup_lookup_walked(&cgroups);
	assert_null(cgroups.late);
}

UNIT_TESTS(cgroup_lookup)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_held_up, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_walk, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
