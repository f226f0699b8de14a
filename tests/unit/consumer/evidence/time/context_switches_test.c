/* SPDX-License-Identifier: BSD-2-Clause */
/* The signal `switch` with a real map of counters; what the broker attaches is a descriptor. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include "tests/unit/consumer/testing/signal_testing.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "consumer/evidence/evidence_kinds.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/signals/signal_programs.h"
#include "consumer/signals/signals.h"
#include "shared/tools/clock.h"

#define SLOT 2

#define AT_STALL                                                                               \
	(1u << SIGNAL_ONCPU | 1u << SIGNAL_OFFCPU | 1u << SIGNAL_SWITCH | 1u << SIGNAL_POOLS | \
	 1u << SIGNAL_RUNQ | 1u << SIGNAL_LOCK | 1u << SIGNAL_SYSCALL | 1u << SIGNAL_SOCKET |  \
	 1u << SIGNAL_NEIGHBOURS)

static struct pinned_maps pins;
static struct signal_programs programs;
static struct signal_host host = { .kinds = evidence_kinds, .pins = &pins, .programs = &programs };
/* The session would have accounts of its threads; here there are none, and the counter counts. */
static struct signal_target target = { .slot = SLOT, .wanted = 1u << SIGNAL_POOLS };

static int setup(void **state)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	pins.abi.cpus_possible = (uint32_t)cpus;
	pins.signal_fd[PINNED_MAP_switches] = bpf_map_create(
		BPF_MAP_TYPE_PERCPU_ARRAY, "unit", 4, sizeof(struct slot_switches), SLOT + 1, NULL);
	programs = (struct signal_programs){};
	programs.of[SIGNAL_SWITCH].fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	programs.of[SIGNAL_SWITCH].n_fds = 1;
	target.stop_ns = 0;
	target.start_ns = clock_mono_ns();
	return 0;
}

static int teardown(void **state)
{
	signal_programs_done(&programs);
	if (pins.signal_fd[PINNED_MAP_switches] >= 0)
		close(pins.signal_fd[PINNED_MAP_switches]);
	return 0;
}

static void count(uint64_t voluntary, uint64_t involuntary)
{
	struct slot_switches *each = calloc(pins.abi.cpus_possible, sizeof(*each));
	uint32_t slot = SLOT;

	assert_non_null(each);
	each[0] = (struct slot_switches){ voluntary, involuntary };
	assert_int_equal(
		bpf_map_update_elem(pins.signal_fd[PINNED_MAP_switches], &slot, each, BPF_ANY), 0);
	free(each);
}

static int64_t number(json_object *root, const char *key)
{
	json_object *switches = json_object_object_get(root, "switches");

	return json_object_get_int64(json_object_object_get(switches, key));
}

/* What was counted between attach and end, and nothing of before. */
static void test_counts(void **state)
{
	struct signal *s;
	json_object *root;

	if (pins.signal_fd[PINNED_MAP_switches] < 0) {
		skip();
		return;
	}
	s = signals_new(SIGNAL_SWITCH, &host, &target);
	assert_non_null(s->off_reason);
	count(100, 10);
	s->kind->attach(s, &host, &target);
	assert_null(s->off_reason);
	count(107, 13);
	s->kind->end(s, &host, &target);
	assert_int_equal(programs.of[SIGNAL_SWITCH].holders, 0);
	root = written(s);
	assert_int_equal(number(root, "voluntary"), 7);
	assert_int_equal(number(root, "involuntary"), 3);
	assert_int_equal(number(root, "late_ms"), 0);
	json_object_put(root);
	signals_free(s);
}

/* A session of one rule's processes in a slot that takes others too has no number of its own. */
static void test_of_others(void **state)
{
	struct signal *s;
	json_object *root;

	if (pins.signal_fd[PINNED_MAP_switches] < 0) {
		skip();
		return;
	}
	s = signals_new(SIGNAL_SWITCH, &host, &target);
	s->kind->attach(s, &host, &target);
	count(7, 3);
	target.shared = true;
	s->kind->end(s, &host, &target);
	target.shared = false;
	assert_null(s->off_reason);
	assert_int_equal(programs.of[SIGNAL_SWITCH].holders, 0);
	root = written(s);
	assert_null(json_object_object_get(root, "switches"));
	assert_non_null(
		strstr(json_object_get_string(json_object_object_get(root, "switches_reason")),
		       "by cgroup"));
	json_object_put(root);
	signals_free(s);
}

/* The counters cannot be read: it reports it, and holds nothing. */
static void test_unreadable(void **state)
{
	struct signal *s = signals_new(SIGNAL_SWITCH, &host, &target);
	json_object *root;

	if (pins.signal_fd[PINNED_MAP_switches] >= 0)
		close(pins.signal_fd[PINNED_MAP_switches]);
	pins.signal_fd[PINNED_MAP_switches] = -1;
	s->kind->attach(s, &host, &target);
	assert_string_equal(s->off_reason, "the counters cannot be read");
	assert_int_equal(programs.of[SIGNAL_SWITCH].holders, 0);
	root = written(s);
	assert_null(json_object_object_get(root, "switches"));
	assert_string_equal(json_object_get_string(json_object_object_get(root, "switches_reason")),
			    "the counters cannot be read");
	json_object_put(root);
	signals_free(s);
}

/*
 * "auto" chooses it for a session that is to explain a stall: at each stall, and at a request. Not
 * for a process that begins; and a rule that names others does not get it.
 */
static void test_wanted(void **state)
{
	struct trigger_reason reason = { .kind = TRIGGER_PRESSURE,
					 .when = { .resource = RESOURCE_CPU } };
	struct rule rule = { .signals_auto = true };

	assert_int_equal(signals_wanted(evidence_kinds, &rule, &reason), AT_STALL);
	assert_non_null(strstr(
		signals_auto_why(evidence_kinds, signals_wanted(evidence_kinds, &rule, &reason)),
		"stall"));
	reason.when.resource = RESOURCE_IO;
	assert_int_equal(signals_wanted(evidence_kinds, &rule, &reason),
			 AT_STALL | 1u << SIGNAL_BLOCK | 1u << SIGNAL_RECLAIM);
	reason.when.resource = RESOURCE_MEMORY;
	assert_int_equal(signals_wanted(evidence_kinds, &rule, &reason),
			 AT_STALL | 1u << SIGNAL_RECLAIM);
	reason.kind = TRIGGER_QUIET;
	assert_int_equal(signals_wanted(evidence_kinds, &rule, &reason),
			 AT_STALL | 1u << SIGNAL_BLOCK | 1u << SIGNAL_RECLAIM);
	reason.kind = TRIGGER_STUCK;
	assert_int_equal(signals_wanted(evidence_kinds, &rule, &reason),
			 AT_STALL | 1u << SIGNAL_BLOCK | 1u << SIGNAL_RECLAIM);
	reason.kind = TRIGGER_OOM_KILL;
	assert_int_equal(signals_wanted(evidence_kinds, &rule, &reason),
			 1u << SIGNAL_ONCPU | 1u << SIGNAL_OFFCPU | 1u << SIGNAL_RECLAIM |
				 1u << SIGNAL_NEIGHBOURS);
	reason.kind = TRIGGER_REQUEST;
	assert_int_equal(signals_wanted(evidence_kinds, NULL, &reason),
			 AT_STALL | 1u << SIGNAL_BLOCK | 1u << SIGNAL_RECLAIM);
	reason.kind = TRIGGER_EXEC;
	assert_int_equal(signals_wanted(evidence_kinds, &rule, &reason),
			 1u << SIGNAL_ONCPU | 1u << SIGNAL_NEIGHBOURS);
	rule = (struct rule){ .signals = 1u << SIGNAL_LOCK };
	assert_int_equal(signals_wanted(evidence_kinds, &rule, &reason),
			 1u << SIGNAL_ONCPU | 1u << SIGNAL_LOCK);
}

UNIT_TESTS(context_switches)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_of_others, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unreadable, setup, teardown),
		cmocka_unit_test(test_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
