/* SPDX-License-Identifier: BSD-2-Clause */
/* The signal `runq` beside `pools`, with real maps; what the broker attaches is a descriptor. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include "tests/unit/consumer/testing/signal_testing.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "consumer/cgroup/cgroups.h"
#include "consumer/evidence/evidence_kinds.h"
#include "consumer/evidence/time/accounts_hold.h"
#include "consumer/evidence/time/queue_waits.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/signals/signal_programs.h"
#include "consumer/signals/signals.h"
#include "shared/tools/clock.h"

#define SLOT 2
#define OWN  100 /* id of the session's cgroup; no other one here exists */

static struct pinned_maps pins;
static struct slot slots[SLOT + 1];
static struct signal_programs programs;
static struct account_holds accounts;
static struct cgroups cgroups;
static struct signal_host host = { .kinds = evidence_kinds,
				   .pins = &pins,
				   .programs = &programs,
				   .accounts = &accounts,
				   .cgroups = &cgroups };
static struct signal_target target;
static char path[] = "/tmp/trocar-unit-runq-XXXXXX", mount[] = "/tmp/trocar-unit-groups-XXXXXX";

static const struct queue_waits *waits_of(const struct signal *s)
{
	return s->evidence;
}

static int make_map(enum bpf_map_type type, size_t key, size_t value, uint32_t entries)
{
	LIBBPF_OPTS(bpf_map_create_opts, options,
		    .map_flags = type == BPF_MAP_TYPE_HASH ? BPF_F_NO_PREALLOC : 0);

	return bpf_map_create(type, "unit", (uint32_t)key, (uint32_t)value, entries, &options);
}

static int setup(void **state)
{
	int fd;

	strcpy(path + strlen(path) - 6, "XXXXXX");
	strcpy(mount + strlen(mount) - 6, "XXXXXX");
	fd = mkstemp(path);
	if (fd < 0 || !mkdtemp(mount) || cgroups_open(mount, &cgroups) < 0)
		return -1;
	close(fd);
	pins = (struct pinned_maps){ .slots = slots, .account_threads_path = path };
	pins.abi.slots = SLOT + 1;
	pins.abi.sched_info = 1;
	pins.abi.cpus_possible = (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
	pins.signal_fd[PINNED_MAP_accounts] = make_map(
		BPF_MAP_TYPE_HASH, sizeof(struct account_key), sizeof(struct thread_times), 64);
	pins.signal_fd[PINNED_MAP_account_losses] =
		make_map(BPF_MAP_TYPE_PERCPU_ARRAY, 4, sizeof(struct slot_accounts), SLOT + 1);
	pins.signal_fd[PINNED_MAP_queue_neighbours] =
		make_map(BPF_MAP_TYPE_HASH, sizeof(struct queue_neighbour), 8, 64);
	pins.watches_fd = make_map(BPF_MAP_TYPE_HASH, 8, sizeof(struct watch_entry), 64);
	programs = (struct signal_programs){};
	accounts = (struct account_holds){};
	programs.of[SIGNAL_POOLS].fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	programs.of[SIGNAL_POOLS].n_fds = 1;
	target = (struct signal_target){
		.slot = SLOT, .cgroup = "/own", .cgroup_id = OWN, .start_ns = clock_mono_ns()
	};
	return 0;
}

static int teardown(void **state)
{
	signal_programs_done(&programs);
	accounts_hold_done_all(&accounts);
	cgroups_done(&cgroups);
	close(pins.signal_fd[PINNED_MAP_accounts]);
	close(pins.signal_fd[PINNED_MAP_account_losses]);
	close(pins.signal_fd[PINNED_MAP_queue_neighbours]);
	close(pins.watches_fd);
	unlink(path);
	rmdir(mount);
	return 0;
}

static bool has_bpf(void)
{
	return pins.signal_fd[PINNED_MAP_accounts] >= 0;
}

static void put_neighbour(uint64_t id, uint32_t slot, uint64_t ns)
{
	const struct queue_neighbour key = { .cgroup_id = id, .slot = slot };

	assert_int_equal(bpf_map_update_elem(pins.signal_fd[PINNED_MAP_queue_neighbours], &key, &ns,
					     BPF_ANY),
			 0);
}

/* A thread that was born, waited three times for a CPU and ended. */
static void put_thread(void)
{
	struct account_key key = { .tid = 5 };
	struct thread_times times = { .account = { .slot = SLOT, .flags = ACCOUNT_ENDED } };

	times.account.tgid = 5;
	times.account.first_ns = times.account.born_ns = clock_mono_ns();
	times.account.since_ns = times.account.first_ns + 100;
	times.account.part_ns[ACCOUNT_QUEUE] = 100;
	times.queue.waits[0] = 3;
	times.queue.behind_ns[QUEUE_SIBLINGS] = 10;
	times.queue.behind_ns[QUEUE_OTHERS] = 90;
	times.queue.longest_ns = 40;
	assert_int_equal(
		bpf_map_update_elem(pins.signal_fd[PINNED_MAP_accounts], &key, &times, BPF_ANY), 0);
}

/*
 * Both signals share the program and the readings; what was counted before is not the session's,
 * and cgroups below its own are no neighbours.
 */
static void test_counts(void **state)
{
	const struct watch_entry below = { .slot = SLOT };
	const uint64_t below_id = 301;
	struct slot_accounts *each = calloc(pins.abi.cpus_possible, sizeof(*each));
	struct signal *pools, *s;
	uint32_t slot = SLOT;
	json_object *root, *whole;

	assert_non_null(each);
	if (!has_bpf()) {
		free(each);
		skip();
		return;
	}
	pools = signals_new(SIGNAL_POOLS, &host, &target);
	s = signals_new(SIGNAL_RUNQ, &host, &target);
	put_neighbour(200, SLOT, 1000); /* of a session that has ended */
	s->kind->attach(s, &host, &target);
	pools->kind->attach(pools, &host, &target);
	assert_null(s->off_reason);
	assert_null(pools->off_reason);
	assert_int_equal(programs.of[SIGNAL_POOLS].holders, 1);
	put_thread();
	put_neighbour(200, SLOT, 60);
	put_neighbour(200, 1, 500); /* of another watch */
	put_neighbour(below_id, SLOT, 30);
	assert_int_equal(bpf_map_update_elem(pins.watches_fd, &below_id, &below, BPF_ANY), 0);
	each[0].unqueued = 7;
	assert_int_equal(bpf_map_update_elem(pins.signal_fd[PINNED_MAP_account_losses], &slot, each,
					     BPF_ANY),
			 0);
	free(each);
	s->kind->end(s, &host, &target);
	assert_int_equal(programs.of[SIGNAL_POOLS].holders, 1);
	pools->kind->end(pools, &host, &target);
	assert_int_equal(programs.of[SIGNAL_POOLS].holders, 0);
	assert_null(accounts.first);
	assert_int_equal(((const struct thread_pools *)pools->evidence)->count, 1);
	assert_int_equal(s->counted->attempted, 10);
	assert_int_equal(s->counted->emitted, 3);
	assert_int_equal(s->counted->lost[DROP_THREADS_FULL], 7);
	assert_int_equal(waits_of(s)->blame.count, 1);
	assert_int_equal(waits_of(s)->blame.items[0].row.cgroup_id, 200);
	assert_int_equal(waits_of(s)->blame.items[0].ns, 60);
	assert_int_equal(queue_waits_own_ns(waits_of(s)), 40);
	assert_int_equal(waits_of(s)->longest[0].tid, 5);
	whole = written(s);
	root = json_object_object_get(whole, "runq");
	assert_int_equal(json_object_get_int64(json_object_object_get(root, "waits")), 3);
	assert_int_equal(json_object_get_int64(json_object_object_get(root, "p99_ns")), 1024);
	json_object_put(whole);
	signals_free(s);
	signals_free(pools);
}

/* Many cgroups of one user are one row, before a bystander with more than each of them. */
static void test_one_owner(void **state)
{
	const struct queue_blame *blame;
	struct signal *s;
	char name[64];

	if (!has_bpf() || geteuid() != 0) {
		skip();
		return;
	}
	snprintf(name, sizeof(name), "%s/u", mount);
	assert_int_equal(mkdir(name, 0755), 0);
	assert_int_equal(chown(name, 61234, (gid_t)-1), 0);
	s = signals_new(SIGNAL_RUNQ, &host, &target);
	s->kind->attach(s, &host, &target);
	for (uint64_t i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "/u/%u", (unsigned int)i);
		cgroups_learn(&cgroups, 1000 + i, name);
		put_neighbour(1000 + i, SLOT, 10);
	}
	cgroups_learn(&cgroups, 2000, "/batch.slice");
	put_neighbour(2000, SLOT, 90);
	put_thread();
	s->kind->end(s, &host, &target);
	s->kind->close(s, &host, &target);
	blame = &waits_of(s)->blame;
	assert_int_equal(blame->count, 2);
	assert_string_equal(blame->items[0].row.path, "/u");
	assert_int_equal(blame->items[0].ns, 600);
	assert_int_equal(blame->items[0].row.uid, 61234);
	assert_int_equal(blame->items[0].row.cgroups, 60);
	assert_string_equal(blame->items[1].row.path, "/batch.slice");
	assert_int_equal(blame->items[1].row.uid, 0);
	assert_int_equal(blame->rest, 0);
	signals_free(s);
	snprintf(name, sizeof(name), "%s/u", mount);
	rmdir(name);
}

/* What another session has counted while this one runs is subtracted, not removed. */
static void test_beside_another(void **state)
{
	struct signal_target other = target;
	struct signal *first, *s;

	if (!has_bpf()) {
		skip();
		return;
	}
	first = signals_new(SIGNAL_RUNQ, &host, &other);
	s = signals_new(SIGNAL_RUNQ, &host, &target);
	first->kind->attach(first, &host, &other);
	put_neighbour(200, SLOT, 1000);
	s->kind->attach(s, &host, &target);
	put_neighbour(200, SLOT, 1060);
	s->kind->end(s, &host, &target);
	assert_int_equal(waits_of(s)->blame.items[0].ns, 60);
	first->kind->end(first, &host, &other);
	assert_int_equal(waits_of(first)->blame.items[0].ns, 1060);
	assert_int_equal(programs.of[SIGNAL_POOLS].holders, 0);
	signals_free(first);
	signals_free(s);
}

/* A cgroup that is found after the end has its name; one that is looked for is not gone. */
static void test_named_later(void **state)
{
	char name[64];
	struct stat st;
	struct signal *s;

	if (!has_bpf()) {
		skip();
		return;
	}
	snprintf(name, sizeof(name), "%s/young", mount);
	assert_int_equal(mkdir(name, 0755), 0);
	assert_int_equal(stat(name, &st), 0);
	s = signals_new(SIGNAL_RUNQ, &host, &target);
	s->kind->attach(s, &host, &target);
	put_neighbour(st.st_ino, SLOT, 60);
	put_neighbour(200, SLOT, 50);
	s->kind->end(s, &host, &target);
	assert_null(waits_of(s)->blame.items[0].row.path);
	while (cgroups_look_awaits(&cgroups, st.st_ino))
		cgroups_look_step(&cgroups, UINT64_MAX);
	s->kind->close(s, &host, &target);
	assert_string_equal(waits_of(s)->blame.items[0].row.path, "/young");
	assert_non_null(strstr(waits_of(s)->blame.items[1].row.unnamed, "ended"));
	signals_free(s);
	rmdir(name);
}

/* A session of one process has its waits, without the cgroups that ran in that time. */
static void test_one_process(void **state)
{
	struct signal *s;
	json_object *root, *whole;

	if (!has_bpf()) {
		skip();
		return;
	}
	target.only_tgid = 5;
	s = signals_new(SIGNAL_RUNQ, &host, &target);
	s->kind->attach(s, &host, &target);
	put_thread();
	put_neighbour(200, SLOT, 60);
	s->kind->end(s, &host, &target);
	assert_int_equal(waits_of(s)->blame.count, 0);
	whole = written(s);
	root = json_object_object_get(whole, "runq");
	assert_non_null(json_object_object_get(root, "neighbours_reason"));
	json_object_put(whole);
	signals_free(s);
}

/* Nothing is attached that could not report anything, nor a program with an unreadable map. */
static void test_without(void **state)
{
	struct signal *s;
	json_object *root;

	pins.abi.sched_info = 0;
	s = signals_new(SIGNAL_RUNQ, &host, &target);
	s->kind->attach(s, &host, &target);
	assert_int_equal(programs.of[SIGNAL_POOLS].holders, 0);
	root = written(s);
	assert_null(json_object_object_get(root, "runq"));
	assert_non_null(strstr(json_object_get_string(json_object_object_get(root, "runq_reason")),
			       "CONFIG_SCHEDSTATS"));
	json_object_put(root);
	signals_free(s);
	pins.abi.sched_info = 1;
	close(pins.signal_fd[PINNED_MAP_queue_neighbours]);
	pins.signal_fd[PINNED_MAP_queue_neighbours] = -1;
	s = signals_new(SIGNAL_RUNQ, &host, &target);
	s->kind->attach(s, &host, &target);
	assert_non_null(s->off_reason);
	assert_int_equal(programs.of[SIGNAL_POOLS].holders, 0);
	assert_null(accounts.first);
	s->kind->end(s, &host, &target);
	assert_null(s->evidence);
	signals_free(s);
}

UNIT_TESTS(runq)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_owner, setup, teardown),
		cmocka_unit_test_setup_teardown(test_beside_another, setup, teardown),
		cmocka_unit_test_setup_teardown(test_named_later, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_process, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
