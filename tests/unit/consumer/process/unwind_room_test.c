/* SPDX-License-Identifier: BSD-2-Clause */
/* The owners of tables and rows that give way, with memory for the kernel side's maps. */
#include "tests/unit/consumer/testing/unwind_testing.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "consumer/process/unwind_room.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define FLOODER (1ULL << 40) /* and the ids that follow: cgroups of one owner */
#define SERVICE (2ULL << 40)

static struct unwind_testing t;
static uint64_t fills;

static void start(uint32_t elements)
{
	char path[64];

	if (!unwind_testing_start(&t, elements))
		return;
	for (uint64_t i = 0; i < UNWIND_TESTING_TABLES + 2; i++) {
		snprintf(path, sizeof(path), "/user.slice/flood/%u", (unsigned int)i);
		cgroups_learn(&t.fake->a.cgroups, FLOODER + i, path);
	}
	cgroups_learn(&t.fake->a.cgroups, SERVICE, "/system.slice/a.service");
}

static int setup(void **state)
{
	start(UNWIND_TESTING_ELEMENTS);
	return 0;
}

static int teardown(void **state)
{
	unwind_testing_stop(&t);
	return 0;
}

static bool has_table(const struct process *p)
{
	return unwind_testing_has_table(p);
}

static bool waits_for_table(const struct process *p)
{
	return p->unwind.lacks_table || has_table(p);
}

static struct process *mapped(uint32_t tgid, uint64_t cgroup_id, struct mapping mapping)
{
	struct process *p = unwind_testing_mapped(&t, tgid, mapping);

	p->announced = false;
	p->cgroup_id = cgroup_id;
	return p;
}

#define STEP_MS 100

/* Makes its table, which the kernel side fills as that one, within that time. */
static void make_table(struct process *p, uint32_t table, int ms)
{
	unwind_testing_fill(&t, ++fills, table, 1);
	unwind_testing_renew(&t, p);
	unwind_testing_run(&t, waits_for_table, p, ms);
	/* On a slow machine its file may not be compiled yet: then a later sample asks again. */
	for (int waited = 0; waited < ms && !has_table(p); waited += STEP_MS) {
		unwind_testing_sample(&t, p);
		unwind_testing_run(&t, has_table, p, STEP_MS);
	}
}

/* One that has this program mapped, and follows. */
static struct process *follow(uint32_t tgid, uint64_t cgroup_id, uint32_t table, int ms)
{
	struct process *p = mapped(tgid, cgroup_id, own_mapping(t.fake->a.symbols));

	make_table(p, table, ms);
	return p;
}

/* As if each was sampled now: on a slow machine none counts as idle. */
static void use_now(struct process **p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i]->unwind.used_ns = clock_mono_ns();
}

/* All tables in use by one owner's processes: another's gets one, a further one of his does not. */
static void test_tables(void **state)
{
	struct process *flooder[UNWIND_TESTING_TABLES], *service;
	const struct owner *owner;

	if (!t.fake)
		skip();
	for (uint32_t i = 0; i < UNWIND_TESTING_TABLES; i++) {
		flooder[i] = follow(100 + i, FLOODER + i, i, 20000);
		assert_true(has_table(flooder[i]));
	}
	owner = t.fake->a.unwind.tables.items[0].holder;
	assert_string_equal(owner->name, "/user.slice/flood");
	assert_int_equal(owner->held[SHARE_TABLES], UNWIND_TESTING_TABLES);
	use_now(flooder, UNWIND_TESTING_TABLES);
	assert_false(has_table(follow(200, FLOODER + UNWIND_TESTING_TABLES, 0, 200)));
	use_now(flooder, UNWIND_TESTING_TABLES);
	flooder[1]->unwind.used_ns = flooder[0]->unwind.used_ns - 1;
	service = follow(300, SERVICE, 1, 20000);
	assert_true(has_table(service));
	assert_int_equal(service->unwind.table, 2);
	assert_false(has_table(flooder[1]));
	assert_int_equal(owner->held[SHARE_TABLES], UNWIND_TESTING_TABLES - 1);
	use_now(flooder, UNWIND_TESTING_TABLES);
	/* Two to one: the next would have as many, so none gives way. */
	assert_false(has_table(follow(301, SERVICE, 0, 200)));
	assert_int_equal(owner->held[SHARE_TABLES], UNWIND_TESTING_TABLES - 1);
	/* Not even where they were not used for a minute. */
	flooder[0]->unwind.used_ns -= 60 * NSEC_PER_SEC;
	assert_false(has_table(follow(302, SERVICE, 0, 200)));
	assert_true(has_table(flooder[0]));
	/* Both owners' tables are by the rows of one file: they count for neither. */
	unwind_room_count(&t.fake->a.unwind.room);
	assert_int_equal(owner->held[SHARE_ROWS], 0);
}

/* A process in a session keeps its table. */
static void test_session(void **state)
{
	static const char path[] = "/user.slice";

	if (!t.fake)
		skip();
	for (uint32_t i = 0; i < UNWIND_TESTING_TABLES; i++)
		assert_true(has_table(follow(100 + i, FLOODER + i, i, 20000)));
	assert_int_equal(captured_add(&t.fake->a.sessions.captured, 1, path), 0);
	assert_false(has_table(follow(300, SERVICE, 0, 200)));
	captured_remove(&t.fake->a.sessions.captured, path);
}

static pid_t sleeper(char maps[32])
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/bin/sleep", "sleep", "60", (char *)NULL);
		_exit(1);
	}
	snprintf(maps, 32, "/proc/%d/maps", pid);
	return pid;
}

/*
 * Whether the program of the maps file is sleep(1); *ret_mapping is then its code. During execve(2)
 * the file lists the memory of before, or little of the new one.
 */
static bool has_become_sleep(const char *maps, struct mapping *ret_mapping)
{
	_cleanup_fclose_ FILE *file = fopen(maps, "re");
	bool mapped = false;
	char line[600];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		mapped = mapped || (strstr(line, "r-xp") && strstr(line, "/sleep\n"));
	if (mapped)
		*ret_mapping = own_mapping_of(t.fake->a.symbols, maps);
	return mapped;
}

/* A pool that one owner's rows fill: they go for another's file, which is smaller. */
static void test_rows(void **state)
{
	struct unwind_files_stats stats;
	struct process *flooder, *service;
	struct mapping mapping;
	uint32_t elements;
	char maps[32];
	pid_t pid;

	if (!t.fake)
		skip();
	assert_true(has_table(follow(100, FLOODER, 0, 20000)));
	unwind_files_stats(t.fake->a.unwind.files, &stats);
	elements = stats.pool_used;
	teardown(state);
	start(elements);
	assert_non_null(t.fake);
	flooder = follow(100, FLOODER, 0, 20000);
	assert_true(has_table(flooder));
	unwind_room_count(&t.fake->a.unwind.room);
	assert_int_equal(t.fake->a.unwind.tables.items[0].holder->held[SHARE_ROWS],
			 8ULL * elements);
	pid = sleeper(maps);
	for (int i = 0; !has_become_sleep(maps, &mapping); i++) {
		assert_true(i < 500);
		usleep(10000);
	}
	service = mapped(300, SERVICE, mapping);
	make_table(service, 1, 20000);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(has_table(service));
	assert_false(has_table(flooder));
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_TESTS(unwind_room)
{
	const struct CMUnitTest tests[] = { EACH(test_tables), EACH(test_session),
					    EACH(test_rows) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
