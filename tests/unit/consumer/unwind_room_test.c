/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose tables and rows give way, with memory for the kernel side's maps. */
#include "fake_agent.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "consumer/process.h"
#include "consumer/process_unwind.h"
#include "consumer/unwind_room.h"
#include "shared/clock.h"
#include "tests/unit/consumer/unwind/own.h"

#define ELEMENTS (1u << 20)
#define TABLES	 3
#define FLOODER	 (1ULL << 40) /* and the ids that follow: cgroups of one owner */
#define SERVICE	 (2ULL << 40)

static struct fake *fake;
static char ranges[128];
static void *pool;
static struct unwind_process *tables;
static uint64_t fills;

static void start(uint32_t elements)
{
	struct pins *p;
	char path[64];

	fake = fake_new();
	if (!fake)
		return;
	p = &fake->a.pins;
	p->abi.unwind_rows = elements;
	p->abi.unwind_tables = TABLES;
	p->unwind_pool_fd = own_memory(ELEMENTS * 8, &pool);
	p->unwind_rules = calloc(UNWIND_RULES_MAX, sizeof(*p->unwind_rules));
	p->unwind_files = calloc(UNWIND_FILES_MAX, sizeof(*p->unwind_files));
	p->unwind_process_fd = own_memory(TABLES * sizeof(*tables), (void **)&tables);
	p->unwind_claims = calloc(1, sizeof(*p->unwind_claims));
	snprintf(ranges, sizeof(ranges), "%s/ranges", fake->dir);
	p->ranges_path = ranges;
	assert_int_equal(process_unwind_start(&fake->a.unwind), 0);
	for (uint64_t i = 0; i < TABLES + 2; i++) {
		snprintf(path, sizeof(path), "/user.slice/flood/%u", (unsigned int)i);
		cgroups_learn(&fake->a.cgroups, FLOODER + i, path);
	}
	cgroups_learn(&fake->a.cgroups, SERVICE, "/system.slice/a.service");
}

static int setup(void **state)
{
	start(ELEMENTS);
	return 0;
}

static int teardown(void **state)
{
	struct pins p;

	if (!fake)
		return 0;
	p = fake->a.pins;
	unlink(ranges);
	process_unwind_done(&fake->a.unwind);
	fake_free(fake);
	munmap(pool, ELEMENTS * 8);
	munmap(tables, TABLES * sizeof(*tables));
	close(p.unwind_pool_fd);
	close(p.unwind_process_fd);
	free(p.unwind_rules);
	free(p.unwind_files);
	free(p.unwind_claims);
	fake = NULL;
	return 0;
}

/* What the kernel side will say of the next filling. */
static void next_fill(uint32_t table)
{
	struct ranges_record record = { .fill = ++fills, .table = table, .count = 1 };
	FILE *file = fopen(ranges, "we");

	assert_non_null(file);
	assert_int_equal(fwrite(&record, sizeof(record), 1, file), 1);
	fclose(file);
}

static bool has_table(const struct process *p)
{
	return p->unwind.table > 0;
}

/* Its mappings were read: makes or renews its table. */
static void renew(struct process *p)
{
	process_queue_read(&fake->a.processes, p);
	process_unwind_step(&fake->a.unwind);
}

/* What the loop does, until the process has a table or `ms` have passed. */
static void run(const struct process *p, int ms)
{
	uint64_t until_ns = clock_mono_ns() + (uint64_t)ms * NSEC_PER_MSEC;

	while (!has_table(p) && clock_mono_ns() < until_ns) {
		struct pollfd fd = { .fd = unwind_files_fd(fake->a.unwind.files),
				     .events = POLLIN };

		if (poll(&fd, 1, 10) == 1)
			process_unwind_news(&fake->a.unwind);
	}
}

static struct process *mapped(uint32_t tgid, uint64_t cgroup_id, struct mapping mapping)
{
	struct process *p;

	assert_int_equal(process_get(&fake->a.processes, tgid, 5, &p), 0);
	p->requested = true;
	p->cgroup_id = cgroup_id;
	assert_int_equal(process_targets_match(&fake->a.targets, p), 0);
	mappings_done(&p->maps);
	p->maps.items = calloc(1, sizeof(*p->maps.items));
	assert_non_null(p->maps.items);
	p->maps.count = 1;
	p->maps.read_ns = clock_mono_ns();
	p->maps.items[0] = mapping;
	return p;
}

/* One that has this program mapped, and follows. */
static struct process *follow(uint32_t tgid, uint64_t cgroup_id, uint32_t table, int ms)
{
	struct process *p = mapped(tgid, cgroup_id, own_mapping(fake->a.symbols));

	next_fill(table);
	renew(p);
	run(p, ms);
	return p;
}

/* All tables in use by one owner's processes: another's gets one, a further one of his does not. */
static void test_tables(void **state)
{
	struct process *flooder[TABLES], *service;
	const struct owner *owner;

	if (!fake)
		skip();
	for (uint32_t i = 0; i < TABLES; i++) {
		flooder[i] = follow(100 + i, FLOODER + i, i, 20000);
		assert_true(has_table(flooder[i]));
	}
	owner = fake->a.unwind.tables.items[0].holder;
	assert_string_equal(owner->name, "/user.slice/flood");
	assert_int_equal(owner->held[SHARE_TABLES], TABLES);
	assert_false(has_table(follow(200, FLOODER + TABLES, 0, 200)));
	flooder[1]->unwind.used_ns = flooder[0]->unwind.used_ns - 1;
	service = follow(300, SERVICE, 1, 20000);
	assert_true(has_table(service));
	assert_int_equal(service->unwind.table, 2);
	assert_false(has_table(flooder[1]));
	assert_int_equal(owner->held[SHARE_TABLES], TABLES - 1);
	/* Two to one: the next would have as many, so nobody gives way. */
	assert_false(has_table(follow(301, SERVICE, 0, 200)));
	assert_int_equal(owner->held[SHARE_TABLES], TABLES - 1);
	/* Not even where they were not used for a minute. */
	flooder[0]->unwind.used_ns -= 60 * NSEC_PER_SEC;
	assert_false(has_table(follow(302, SERVICE, 0, 200)));
	assert_true(has_table(flooder[0]));
	/* Both owners' tables are by the rows of one file: they count for neither. */
	unwind_room_count(&fake->a.unwind.room);
	assert_int_equal(owner->held[SHARE_ROWS], 0);
}

/* A process in a session keeps its table. */
static void test_session(void **state)
{
	static const char path[] = "/user.slice";

	if (!fake)
		skip();
	for (uint32_t i = 0; i < TABLES; i++)
		assert_true(has_table(follow(100 + i, FLOODER + i, i, 20000)));
	assert_int_equal(captured_add(&fake->a.sessions.captured, 1, path), 0);
	assert_false(has_table(follow(300, SERVICE, 0, 200)));
	captured_remove(&fake->a.sessions.captured, path);
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

/* The module that this maps file begins with is no longer this program's. */
static bool has_become(const char *maps, const struct module *own, struct mapping *ret_mapping)
{
	*ret_mapping = own_mapping_of(fake->a.symbols, maps);
	return ret_mapping->module != own && strstr(ret_mapping->module->path, "sleep");
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

	if (!fake)
		skip();
	assert_true(has_table(follow(100, FLOODER, 0, 20000)));
	unwind_files_stats(fake->a.unwind.files, &stats);
	elements = stats.pool_used;
	teardown(state);
	start(elements);
	assert_non_null(fake);
	flooder = follow(100, FLOODER, 0, 20000);
	assert_true(has_table(flooder));
	unwind_room_count(&fake->a.unwind.room);
	assert_int_equal(fake->a.unwind.tables.items[0].holder->held[SHARE_ROWS], 8ULL * elements);
	pid = sleeper(maps);
	for (int i = 0; i < 500 && !has_become(maps, flooder->maps.items[0].module, &mapping); i++)
		usleep(10000);
	service = mapped(300, SERVICE, mapping);
	next_fill(1);
	renew(service);
	run(service, 20000);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(has_table(service));
	assert_false(has_table(flooder));
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = { EACH(test_tables), EACH(test_session),
					    EACH(test_rows) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
