/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether the data read was not in memory yet. */
#include "consumer/answer/find_cache.h"
#include "consumer/evidence/evidence_kinds.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer/evidence/disks/block_requests.h"
#include "consumer/kernel/pinned_maps.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/testing/report_testing.h"

#define NO_DEVICE (4095u << 20 | 1048575u) /* this machine has no such one */
#define MIB	  (1ull << 20)

static const struct pinned_maps pins;
static const struct signal_host host = { .kinds = evidence_kinds, .pins = &pins };
static const struct signal_target target;

/* What the facts of memory were at the trigger and at the end. */
struct memory {
	uint64_t file[2], dirty[2], refaults[2];
};

static void set_facts(struct facts_phases *f, const struct memory *m)
{
	for (int i = 0; i < 2; i++) {
		struct facts *at = &f->at[i ? FACTS_END : FACTS_TRIGGER];

		f->has[i ? FACTS_END : FACTS_TRIGGER] = true;
		at->time_ns = (uint64_t)(i * 2 + 1) * NSEC_PER_SEC;
		at->value[FACT_MEMORY_FILE] = m->file[i];
		at->value[FACT_MEMORY_DIRTY] = m->dirty[i];
		at->value[FACT_MEMORY_REFAULT_FILE] = m->refaults[i];
		at->has = 1ull << FACT_MEMORY_FILE | 1ull << FACT_MEMORY_DIRTY |
			  1ull << FACT_MEMORY_REFAULT_FILE;
	}
}

/* 100 MiB were read in three quarters of the disk's time, `written` MiB written. */
static struct findings found(const struct memory *m, uint64_t written, uint64_t *ret_ns)
{
	struct block_disk disks[] = {
		{ .device = NO_DEVICE,
		  .op = BLOCK_READ,
		  .all = { .requests = 9, .bytes = 100 * MIB, .service_ns = 3 * NSEC_PER_SEC } },
		{ .device = NO_DEVICE,
		  .op = BLOCK_WRITE,
		  .all = { .requests = 9, .bytes = written * MIB, .queue_ns = NSEC_PER_SEC } },
	};
	struct block_requests all = { .items = disks, .count = 2 };
	struct session_result *session = report_testing_new_session("/a");
	struct signal *block = signals_new(SIGNAL_BLOCK, &host, &target);
	struct facts_phases *facts = calloc(1, sizeof(*facts));
	static struct session_digest summary;
	struct findings_search s = { .session = session, .summary = &summary };

	assert_true(block && facts);
	set_facts(facts, m);
	block->evidence = &all;
	session->signals[SIGNAL_BLOCK] = block;
	session->facts = facts;
	s.part_ns[ACCOUNT_IO] = s.found.time_ns[FINDINGS_WAITING] = 4 * NSEC_PER_SEC;
	*ret_ns = find_cache_cold(&s, 4 * NSEC_PER_SEC);
	session->facts = NULL;
	free(facts);
	session_result_free(session);
	return s.found;
}

/* What was read stayed in memory: as much of the waits as reads had of the disk's time. */
static void test_cold(void **state)
{
	struct memory m = { .file = { 50 * MIB, 148 * MIB }, .refaults = { 5, 8 } };
	struct findings f;
	uint64_t ns;

	f = found(&m, 0, &ns);
	assert_int_equal(f.count, 1);
	assert_int_equal(f.items[0].cause, FINDING_CACHE_COLD);
	assert_int_equal(ns, 3 * NSEC_PER_SEC);
	assert_int_equal(f.items[0].ns, ns);
	assert_non_null(strstr(f.items[0].says,
			       "the data were not in memory yet: 100.0 MiB came from "
			       "4095:1048575, 98.0 MiB of files stayed in memory, "
			       "3 evicted pages were read again"));
}

/* It did not stay, it was written and not read, or it had been thrown out before. */
static void test_not_cold(void **state)
{
	struct memory m = { .file = { 50 * MIB, 99 * MIB } };
	uint64_t ns;

	assert_int_equal(found(&m, 0, &ns).count, 0);
	assert_int_equal(ns, 0);
	m.file[1] = 148 * MIB;
	assert_int_equal(found(&m, 49, &ns).count, 0);
	assert_int_equal(found(&m, 40, &ns).count, 1);
	m.dirty[1] = 49 * MIB;
	assert_int_equal(found(&m, 0, &ns).count, 0);
	m.dirty[1] = 0;
	m.refaults[1] = 60 * MIB / (uint64_t)sysconf(_SC_PAGESIZE);
	assert_int_equal(found(&m, 0, &ns).count, 0);
	m = (struct memory){ .file = { 148 * MIB, 50 * MIB } };
	assert_int_equal(found(&m, 0, &ns).count, 0);
}

UNIT_TESTS(find_cache)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_cold),
					    cmocka_unit_test(test_not_cold) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
