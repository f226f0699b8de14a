/* SPDX-License-Identifier: BSD-2-Clause */
/* What a session takes of the kernel side's counts of CPU time by cgroup, in a real map. */
#include "consumer/evidence/cpu/neighbours.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "consumer/cgroup/cgroup_names.h"
#include "tests/unit/consumer/testing/fake_agent_testing.h"

#define OWN	  (1ULL << 50) /* ids that no cgroup of the machine has */
#define OTHER	  (OWN + 1)
#define OWN_SLOT  3u
#define BY_NOBODY 0x7fffffffu /* pid of no process */

static struct fake *fake;
static const struct neighbours_target of = { .cgroup_id = OWN, .cgroup = "/own", .slot = OWN_SLOT };

static int begin_test(void **state)
{
	fake = fake_new();
	if (!fake)
		return 0;
	cgroups_learn(&fake->a.cgroups, OWN, "/own");
	cgroups_learn(&fake->a.cgroups, OTHER, "/batch.slice");
	return 0;
}

static int end_test(void **state)
{
	if (fake)
		fake_free(fake);
	return 0;
}

static void put_time(uint64_t id, uint64_t cpu_ns, uint32_t slot, const char *name)
{
	struct neighbour n = {
		.cpu_ns = cpu_ns, .tgid = BY_NOBODY, .slot = slot, .comm = "stress"
	};

	strcpy(n.name, name);
	assert_int_equal(bpf_map_update_elem(fake->a.pins.neighbours_fd, &id, &n, BPF_ANY), 0);
}

/* The cgroup has had so much time since the map was made. */
static void have_had(uint64_t id, uint64_t cpu_ns, uint32_t slot)
{
	put_time(id, cpu_ns, slot, "last");
}

/* The same on one CPU; there may be only one. */
static void have_had_on(uint64_t id, uint32_t cpu, uint64_t ns)
{
	uint32_t cpus = fake->a.pins.abi.cpus_possible;
	uint64_t *each = calloc(cpus, sizeof(*each));

	assert_non_null(each);
	(void)bpf_map_lookup_elem(fake->a.pins.neighbour_cpus_fd, &id, each);
	each[cpu % cpus] = ns;
	assert_int_equal(bpf_map_update_elem(fake->a.pins.neighbour_cpus_fd, &id, each, BPF_ANY),
			 0);
	free(each);
}

static void have_totals(uint64_t idle_ns, uint64_t full_ns, uint64_t hidden_ns)
{
	uint32_t zero = 0, cpus = fake->a.pins.abi.cpus_possible;
	struct totals *each = calloc(cpus, sizeof(*each));

	assert_non_null(each);
	each[0] = (struct totals){ .idle_ns = idle_ns,
				   .neighbours_full_ns = full_ns,
				   .neighbours_hidden_ns = hidden_ns };
	assert_int_equal(bpf_map_update_elem(fake->a.pins.totals_fd, &zero, each, BPF_ANY), 0);
	free(each);
}

static struct neighbour_counts begin_counts(void)
{
	struct neighbour_counts counts;

	if (!fake)
		skip();
	neighbours_begin(&fake->a.pins, &counts);
	assert_null(counts.reason);
	return counts;
}

static struct neighbours end_counts(struct neighbour_counts *counts)
{
	struct neighbours found;

	neighbours_end(&fake->a.pins, &fake->a.cgroups, &of, counts, &found);
	assert_null(counts->reason);
	neighbour_counts_done(counts);
	assert_int_equal(neighbours_close(&fake->a.cgroups, &of, &found), 0);
	return found;
}

/* Sessions that overlap have their own differences; the map is emptied when none runs. */
static void test_each_session_has_its_own_time(void **state)
{
	struct neighbour_counts first, second;
	struct neighbours n;

	if (!fake)
		skip();
	have_had(OTHER, 77, NO_SLOT);
	have_totals(1000, 0, 0);
	first = begin_counts();
	assert_int_equal(fake->control.sessions, 1);
	have_had(OTHER, 100, NO_SLOT);
	have_had(OWN, 40, OWN_SLOT);
	have_totals(1500, 0, 0);
	second = begin_counts();
	assert_int_equal(fake->control.sessions, 2);
	have_had(OTHER, 130, NO_SLOT);
	n = end_counts(&first);
	assert_int_equal(n.count, 1);
	assert_int_equal(n.items[0].cpu_ns, 130);
	assert_int_equal(n.own_ns, 40);
	assert_int_equal(n.idle_ns, 500);
	neighbours_done(&n);
	have_had(OTHER, 160, NO_SLOT);
	n = end_counts(&second);
	assert_int_equal(n.items[0].cpu_ns, 60);
	assert_int_equal(n.own_ns, 0);
	assert_int_equal(n.idle_ns, 0);
	assert_int_equal(fake->control.sessions, 0);
	neighbours_done(&n);
}

static void test_the_largest_are_named(void **state)
{
	struct neighbour_counts counts = begin_counts();
	struct neighbours n;

	have_totals(0, 1000, 300);
	for (uint64_t i = 0; i < 12; i++) {
		char path[32];

		snprintf(path, sizeof(path), "/n%u", (unsigned int)i);
		cgroups_learn(&fake->a.cgroups, OTHER + i, path);
		have_had(OTHER + i, 10 + i, NO_SLOT);
	}
	n = end_counts(&counts);
	assert_int_equal(n.count, NEIGHBOURS_NAMED);
	assert_string_equal(n.items[0].row.path, "/n11");
	assert_int_equal(n.items[0].cpu_ns, 21);
	assert_string_equal(n.items[0].comm, "stress");
	assert_string_equal(n.items[7].row.path, "/n4");
	assert_int_equal(n.rest, 4);
	assert_int_equal(n.rest_ns, 10 + 11 + 12 + 13);
	assert_int_equal(n.unlisted_ns, 1000);
	assert_int_equal(n.hidden_ns, 300);
	assert_int_equal(n.others_ns, 12 * 10 + 66 + 1300);
	neighbours_done(&n);
}

/* A hierarchy with the directories of two users, /u and /v, in the place of the fake's. */
static char users[64];
static int users_before;

static void begin_users(void)
{
	char name[80];

	strcpy(users, "/dev/shm/trocar-unit-XXXXXX");
	assert_non_null(mkdtemp(users));
	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "%s/%s", users, i ? "v" : "u");
		assert_int_equal(mkdir(name, 0755), 0);
		assert_int_equal(chown(name, (uid_t)(61234 + i), (gid_t)-1), 0);
	}
	users_before = fake->a.cgroups.mount_fd;
	fake->a.cgroups.mount_fd = open(users, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void end_users(void)
{
	char name[80];

	close(fake->a.cgroups.mount_fd);
	fake->a.cgroups.mount_fd = users_before;
	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "%s/%s", users, i ? "v" : "u");
		rmdir(name);
	}
	rmdir(users);
}

/*
 * 300 cgroups of one user are one row with the user's directory, before a bystander with more than
 * each of them; a cgroup of his alone has its own path.
 */
static void test_one_owner(void **state)
{
	struct neighbour_counts counts = begin_counts();
	struct neighbours n;
	char name[64];

	if (geteuid() != 0)
		skip();
	begin_users();
	for (uint64_t i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "/u/%u", (unsigned int)i);
		cgroups_learn(&fake->a.cgroups, OTHER + 1 + i, name);
		have_had(OTHER + 1 + i, 10, NO_SLOT);
		have_had_on(OTHER + 1 + i, 0, 10);
	}
	cgroups_learn(&fake->a.cgroups, OTHER + 400, "/v/only");
	have_had(OTHER, 500, NO_SLOT);
	have_had(OTHER + 400, 20, NO_SLOT);
	n = end_counts(&counts);
	end_users();
	assert_int_equal(n.count, 3);
	assert_string_equal(n.items[0].row.path, "/u");
	assert_int_equal(n.items[0].cpu_ns, 3000);
	assert_int_equal(n.items[0].beside_ns, 3000);
	assert_int_equal(n.items[0].row.uid, 61234);
	assert_int_equal(n.items[0].row.cgroups, 300);
	assert_string_equal(n.items[0].comm, "");
	assert_string_equal(n.items[1].row.path, "/batch.slice");
	assert_int_equal(n.items[1].row.uid, 0);
	assert_string_equal(n.items[2].row.path, "/v/only");
	assert_int_equal(n.items[2].row.uid, 61235);
	assert_int_equal(n.items[2].row.cgroups, 1);
	assert_int_equal(n.items[2].row.cgroup_id, OTHER + 400);
	assert_int_equal(n.rest, 0);
	neighbours_done(&n);
}

/* The same for removed cgroups, by the directories above them (finding A8). */
static void test_gone_of_one_owner(void **state)
{
	struct neighbour_counts counts = begin_counts();
	struct neighbours_target named = of;
	struct cgroup_names names;
	struct neighbour gone = {
		.cpu_ns = 10,
		.tgid = BY_NOBODY,
		.slot = NO_SLOT,
		.name = "nginx.service",
		.above = { OTHER + 500, OTHER + 501 },
	};
	struct neighbours n;

	if (geteuid() != 0)
		skip();
	begin_users();
	cgroup_names_init(&names);
	named.names = &names;
	cgroups_learn(&fake->a.cgroups, OTHER + 500, "/u");
	for (uint64_t i = 1; i <= 300; i++) {
		uint64_t id = OTHER + i;

		assert_int_equal(
			bpf_map_update_elem(fake->a.pins.neighbours_fd, &id, &gone, BPF_ANY), 0);
	}
	have_had(OTHER, 500, NO_SLOT);
	have_had(OTHER + 400, 20, NO_SLOT);
	neighbours_end(&fake->a.pins, &fake->a.cgroups, &named, &counts, &n);
	neighbour_counts_done(&counts);
	assert_int_equal(neighbours_close(&fake->a.cgroups, &named, &n), 0);
	end_users();
	assert_int_equal(n.count, 3);
	assert_string_equal(n.items[0].row.path, "/u");
	assert_int_equal(n.items[0].cpu_ns, 3000);
	assert_int_equal(n.items[0].row.uid, 61234);
	assert_int_equal(n.items[0].row.cgroups, 300);
	assert_string_equal(n.items[1].row.path, "/batch.slice");
	assert_null(n.items[2].row.path);
	assert_int_equal(n.items[2].row.uid, 0);
	neighbours_done(&n);
	cgroup_names_done(&names);
}

/* A name that has less than half of the ticks is not used. */
static void test_name(void **state)
{
	struct neighbour_counts counts = begin_counts();
	struct neighbour n = { .cpu_ns = 9, .tgid = BY_NOBODY, .slot = NO_SLOT, .comm = "few" };
	struct neighbours found;
	uint64_t id = OTHER;

	for (int i = 0; i < 2; i++, id++) {
		n.ticks = 10;
		n.votes = i ? 4 : 5;
		assert_int_equal(bpf_map_update_elem(fake->a.pins.neighbours_fd, &id, &n, BPF_ANY),
				 0);
	}
	found = end_counts(&counts);
	assert_int_equal(found.count, 2);
	assert_string_equal(found.items[0].comm, "few");
	assert_string_equal(found.items[1].comm, "");
	neighbours_done(&found);
}

/* No cgroup below the session's is a neighbour; for removed ones the watch decides. */
static void test_own_cgroup_is_no_neighbour(void **state)
{
	struct neighbour_counts counts = begin_counts();
	struct neighbours n;

	cgroups_learn(&fake->a.cgroups, OTHER + 1, "/own/worker");
	cgroups_learn(&fake->a.cgroups, OTHER + 2, "/owner");
	have_had(OWN, 1, OWN_SLOT);
	have_had(OTHER + 1, 2, NO_SLOT);
	have_had(OTHER + 2, 4, NO_SLOT);
	have_had(OTHER + 3, 8, OWN_SLOT);
	have_had(OTHER + 4, 16, NO_SLOT);
	n = end_counts(&counts);
	assert_int_equal(n.own_ns, 1 + 2 + 8);
	assert_int_equal(n.others_ns, 4 + 16);
	assert_int_equal(n.count, 2);
	assert_null(n.items[0].row.path);
	assert_string_equal(n.items[0].name, "last");
	assert_string_equal(n.items[1].row.path, "/owner");
	neighbours_done(&n);
}

/* The host's root, seen from a cgroup namespace: no path of ours leads to it, and it has no name.
 */
static void test_root_of_the_host(void **state)
{
	struct neighbour_counts counts = begin_counts();
	struct neighbours n;

	put_time(OTHER + 1, 5, NO_SLOT, "");
	n = end_counts(&counts);
	assert_int_equal(n.count, 1);
	assert_string_equal(n.items[0].row.path, "/");
	neighbours_done(&n);
}

/*
 * The user of the CPU that the session's cgroup ran on is distinguished from the user of another
 * one.
 */
static void test_beside(void **state)
{
	struct neighbour_counts counts;
	struct neighbours n;

	if (!fake)
		skip();
	if (fake->a.pins.abi.cpus_possible < 2)
		skip();
	have_had(OTHER, 500, NO_SLOT);
	have_had_on(OTHER, 1, 500);
	fake->control.sessions = 1; /* another session keeps the counts */
	counts = begin_counts();
	have_had(OWN, 300, OWN_SLOT);
	have_had_on(OWN, 1, 290);
	have_had_on(OWN, 0, 10); /* where it was before it was bound */
	have_had(OTHER, 1100, NO_SLOT);
	have_had_on(OTHER, 1, 1100);
	have_had(OTHER + 1, 900, NO_SLOT);
	have_had_on(OTHER + 1, 0, 900);
	n = end_counts(&counts);
	assert_int_equal(n.own_cpus, 1);
	assert_int_equal(n.items[0].cpu_ns, 900);
	assert_int_equal(n.items[0].beside_ns, 0);
	assert_int_equal(n.items[1].cpu_ns, 600);
	assert_int_equal(n.items[1].beside_ns, 600);
	assert_int_equal(n.beside_ns, 600);
	neighbours_done(&n);
	/* Without time of its own every CPU may be the one that it waits for. */
	counts = begin_counts();
	have_had(OTHER + 1, 950, NO_SLOT);
	have_had_on(OTHER + 1, 0, 950);
	n = end_counts(&counts);
	assert_int_equal(n.own_cpus, 0);
	assert_int_equal(n.beside_ns, 50);
	neighbours_done(&n);
}

static void test_root_is_only_itself(void **state)
{
	const struct neighbours_target root = { .cgroup_id = OWN, .cgroup = "/", .slot = OWN_SLOT };
	struct neighbour_counts counts = begin_counts();
	struct neighbours n;

	have_had(OWN, 1, OWN_SLOT);
	have_had(OTHER, 2, OWN_SLOT);
	neighbours_end(&fake->a.pins, &fake->a.cgroups, &root, &counts, &n);
	assert_int_equal(neighbours_close(&fake->a.cgroups, &root, &n), 0);
	assert_int_equal(n.own_ns, 1);
	assert_int_equal(n.others_ns, 2);
	neighbour_counts_done(&counts);
	neighbours_done(&n);
}

/* Without the map a session runs all the same, and has no others. */
static void test_unreadable_is_not_zero(void **state)
{
	struct neighbour_counts counts;
	struct neighbours n;
	int fd;

	if (!fake)
		skip();
	fd = fake->a.pins.neighbours_fd;
	fake->a.pins.neighbours_fd = -1;
	neighbours_begin(&fake->a.pins, &counts);
	assert_non_null(counts.reason);
	assert_int_equal(fake->control.sessions, 1);
	neighbours_end(&fake->a.pins, &fake->a.cgroups, &of, &counts, &n);
	assert_int_equal(n.cpus, 0);
	assert_int_equal(fake->control.sessions, 0);
	fake->a.pins.neighbours_fd = fd;
}

UNIT_TESTS(neighbours)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each_session_has_its_own_time, begin_test,
						end_test),
		cmocka_unit_test_setup_teardown(test_the_largest_are_named, begin_test, end_test),
		cmocka_unit_test_setup_teardown(test_one_owner, begin_test, end_test),
		cmocka_unit_test_setup_teardown(test_gone_of_one_owner, begin_test, end_test),
		cmocka_unit_test_setup_teardown(test_name, begin_test, end_test),
		cmocka_unit_test_setup_teardown(test_own_cgroup_is_no_neighbour, begin_test,
						end_test),
		cmocka_unit_test_setup_teardown(test_root_of_the_host, begin_test, end_test),
		cmocka_unit_test_setup_teardown(test_beside, begin_test, end_test),
		cmocka_unit_test_setup_teardown(test_root_is_only_itself, begin_test, end_test),
		cmocka_unit_test_setup_teardown(test_unreadable_is_not_zero, begin_test, end_test),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
