/* SPDX-License-Identifier: BSD-2-Clause */
/* account_near.c: time accounts in the array that stands before the hash (bpf/time/account_find.h).
 */
#include <pthread.h>

#include "account_fixture.h"

#define SHARERS (2 * ACCOUNTS_NEAR)

static void *share_element(void *unused)
{
	block_sleep(unused);
	return NULL;
}

static void share_elements(void *unused)
{
	pthread_t thread;

	for (int i = 1; i < SHARERS; i++)
		pthread_create(&thread, NULL, share_element, NULL);
	block_sleep(NULL);
}

static size_t count_far(const struct fixture *f)
{
	int fd = bpf_map__fd(f->h->skel->maps.accounts);
	struct account_key key, *previous = NULL;
	size_t n = 0;

	for (; bpf_map_get_next_key(fd, previous, &key) == 0; n++)
		previous = &key;
	return n;
}

/* Two threads for each element of the array: one has it, the other one is in the hash. */
static void elements_are_shared(void **state)
{
	struct fixture f = begin(NULL, 0);
	pid_t pid = harness_start(share_elements, NULL, f.dir);
	struct account_record record;
	uint64_t ns;

	harness_sleep_ms(200);
	assert_int_equal(read_accounts(&f, pid, &record), SHARERS);
	assert_int_equal(count_elements(&f, 0, &ns), SHARERS);
	/* Their tids follow each other, but for those of others that began meanwhile. */
	assert_in_range(count_far(&f), SHARERS - ACCOUNTS_NEAR, SHARERS - 1);
	harness_sleep_ms(100);
	harness_kill(pid);
	harness_sleep_ms(100);
	assert_int_equal(count_elements(&f, ACCOUNT_ENDED, &ns), SHARERS);
	assert_true(ns >= SHARERS * 100 * MSEC);
	end(&f);
}

/* The consumer may free all elements at any time: the threads get others, which close. */
static void freed_under_the_thread(void **state)
{
	struct fixture f = begin(NULL, 0);
	const struct near_account nobody = {};
	pid_t pid = harness_spawn("t-burn", "burn", f.dir);
	int fd = bpf_map__fd(f.h->skel->maps.accounts_near);
	struct account_record record;

	for (int i = 0; i < 50; i++) {
		for (uint32_t at = 0; at < ACCOUNTS_NEAR; at++)
			assert_int_equal(bpf_map_update_elem(fd, &at, &nobody, BPF_ANY), 0);
		harness_sleep_ms(5);
		read_accounts(&f, pid, &record);
		assert_int_equal(record.head.tid, pid);
		assert_int_equal(record.head.account.slot, SLOT);
		assert_int_equal(sum_parts(&record.head.account),
				 record.head.account.since_ns - record.head.account.first_ns);
	}
	harness_kill(pid);
	end(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elements_are_shared),
		cmocka_unit_test(freed_under_the_thread),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
