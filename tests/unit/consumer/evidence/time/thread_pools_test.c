/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads grouped by process and name, and the tables that the accounts are made by. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "consumer/evidence/time/thread_pools.h"
#include "shared/tools/macro.h"

static struct thread_accounts accounts;

static int setup(void **state)
{
	accounts = (struct thread_accounts){};
	accounts.items = calloc(256, sizeof(*accounts.items));
	return accounts.items ? 0 : -1;
}

static int teardown(void **state)
{
	free(accounts.items);
	return 0;
}

static struct thread_account *add(uint32_t tgid, uint32_t tid, const char *comm, uint64_t wall_ns)
{
	struct thread_account *t = &accounts.items[accounts.count++];

	*t = (struct thread_account){ .tgid = tgid, .tid = tid, .start_ns = 5 };
	snprintf(t->comm, sizeof(t->comm), "%s", comm);
	t->wall_ns = wall_ns;
	t->part_ns[ACCOUNT_LOCK] = wall_ns;
	return t;
}

static void test_groups(void **state)
{
	struct thread_account *late = add(7, 70, "worker-1", 100);
	struct thread_pools p;

	late->fate = THREAD_BORN | THREAD_ENDED;
	late->longest_ns = 60;
	late->longest_kind = ACCOUNT_LOCK;
	add(7, 71, "main", 1000);
	add(7, 72, "worker-22", 300)->part_ns[ACCOUNT_RUNNING] = 11;
	add(8, 73, "worker-3", 50)->fate = THREAD_ARRIVED;
	add(8, 74, "123", 40)->fate = THREAD_LEFT;
	assert_int_equal(thread_pools_make(&accounts, &p), 0);
	assert_int_equal(p.count, 4);
	assert_string_equal(p.items[0].name, "main");
	assert_string_equal(p.items[1].name, "worker-");
	assert_int_equal(p.items[1].tgid, 7);
	assert_int_equal(p.items[1].threads, 2);
	assert_int_equal(p.items[1].wall_ns, 400);
	assert_int_equal(p.items[1].part_ns[ACCOUNT_LOCK], 400);
	assert_int_equal(p.items[1].part_ns[ACCOUNT_RUNNING], 11);
	assert_int_equal(p.items[1].born, 1);
	assert_int_equal(p.items[1].ended, 1);
	assert_int_equal(p.items[1].longest_ns, 60);
	assert_int_equal(p.items[1].longest_tid, 70);
	assert_string_equal(p.items[1].longest_comm, "worker-1");
	assert_int_equal(p.items[2].tgid, 8);
	assert_int_equal(p.items[2].arrived, 1);
	assert_string_equal(p.items[3].name, "");
	assert_int_equal(p.items[3].left, 1);
	assert_int_equal(p.all.threads, 5);
	assert_int_equal(p.all.pools, 4);
	assert_int_equal(p.all.wall_ns, 1490);
	assert_int_equal(thread_pools_waited_ns(&p.all), 1490);
	thread_pools_done(&p);
}

/* Many pools: the rest is one, and nothing is missing. */
static void test_rest(void **state)
{
	struct thread_pools p;
	uint64_t threads = 0, wall_ns = 0;

	for (uint32_t i = 0; i < 100; i++)
		add(100 + i, i, "x", 1000 - i);
	assert_int_equal(thread_pools_make(&accounts, &p), 0);
	assert_int_equal(p.count, THREAD_POOLS_NAMED + 1);
	assert_int_equal(p.items[0].wall_ns, 1000);
	assert_int_equal(p.items[THREAD_POOLS_NAMED].tgid, 0);
	assert_int_equal(p.items[THREAD_POOLS_NAMED].pools, 100 - THREAD_POOLS_NAMED);
	for (size_t i = 0; i < p.count; i++) {
		threads += p.items[i].threads;
		wall_ns += p.items[i].wall_ns;
	}
	assert_int_equal(threads, 100);
	assert_int_equal(wall_ns, p.all.wall_ns);
	thread_pools_done(&p);
}

static void test_none(void **state)
{
	struct thread_pools p;

	assert_int_equal(thread_pools_make(&accounts, &p), 0);
	assert_int_equal(p.count, 0);
	thread_pools_done(&p);
}

/* Every row of account_parts.def is a word of its own. */
static void test_words(void **state)
{
	assert_string_equal(thread_pools_part(ACCOUNT_RUNNING), "running");
	assert_string_equal(thread_pools_part(ACCOUNT_OTHER), "other");
	for (int i = 1; i < ACCOUNT_PARTS_; i++)
		assert_string_not_equal(thread_pools_part((enum account_part)i),
					thread_pools_part((enum account_part)(i - 1)));
}

/* The numbers of wait_calls.def are those of this machine's own header. */
static void test_numbers(void **state)
{
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_futex_wait
#define SYS_futex_wait 455
#endif
#if defined(__x86_64__)
#define WAIT_CALL(name, x86, arm64, part) { #name, x86, SYS_##name },
#define WAIT_CALL_X86(name, x86, part)	  { #name, x86, SYS_##name },
	static const struct {
		const char *name;
		long said, here;
	} rows[] = {
#include "shared/abi/wait_calls.def"
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(rows[i].said, rows[i].here);
#endif
}

UNIT_TESTS(thread_pools)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_groups, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rest, setup, teardown),
		cmocka_unit_test_setup_teardown(test_none, setup, teardown),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
