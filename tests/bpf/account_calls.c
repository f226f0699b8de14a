/* SPDX-License-Identifier: BSD-2-Clause */
/* account_calls.c: waits by system call, against the threads' own actions. */
#include <sys/syscall.h>
#include <time.h>

#include "account_fixture.h"

HARNESS_LOADS("account_*");

/* What the map has for a call, over all CPUs. */
static struct call_waits find_waits(const struct fixture *f, uint32_t call)
{
	const struct account_call_key key = { .slot = SLOT, .call = call };
	struct call_waits each[HARNESS_CPUS], sum = {};

	if (bpf_map_lookup_elem(bpf_map__fd(f->h->skel->maps.account_calls), &key, each))
		return sum;
	for (int i = 0; i < libbpf_num_possible_cpus(); i++) {
		sum.waits += each[i].waits;
		sum.wait_ns += each[i].wait_ns;
		if (each[i].longest_ns > sum.longest_ns) {
			sum.longest_ns = each[i].longest_ns;
			sum.longest_tid = each[i].longest_tid;
		}
	}
	return sum;
}

/* In the watched group: ten sleeps of 30 ms, then one for ever. */
static void sleep_ten_times(void *context)
{
	const struct timespec rest = { .tv_nsec = 30000000 };

	for (int i = 0; i < 10; i++)
		syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &rest, NULL);
	block_sleep(NULL);
}

/* Each wait counts once, under its number, with its time; the last one is not over. */
static void counts_waits(void **state)
{
	struct fixture f = begin(NULL, 0);
	struct account_record record;
	struct call_waits w;
	pid_t pid;

	f.h->control->calls = 1;
	pid = harness_start(sleep_ten_times, NULL, f.dir);
	harness_sleep_ms(600);
	w = find_waits(&f, SYS_clock_nanosleep);
	assert_in_range(w.waits, 9, 12);
	assert_near_ms(w.wait_ns, 300 * MSEC);
	assert_true(w.longest_ns >= 29 * MSEC);
	assert_int_equal(w.longest_tid, pid);
	read_accounts(&f, pid, &record);
	assert_int_equal(record.head.account.call, SYS_clock_nanosleep);
	assert_true(record.head.open_wait_ns >= 100 * MSEC);
	harness_kill(pid);
	end(&f);
}

/* As long as no session wants it nothing is counted. */
static void counts_on_demand(void **state)
{
	struct fixture f = begin(NULL, 0);
	pid_t pid = harness_start(sleep_ten_times, NULL, f.dir);

	harness_sleep_ms(300);
	assert_int_equal(find_waits(&f, SYS_clock_nanosleep).waits, 0);
	harness_kill(pid);
	end(&f);
}

/* What finds no room is counted, with its time. */
static void table_is_full(void **state)
{
	const struct harness_options options = { .account_calls = 1 };
	struct fixture f = begin(&options, 0);
	struct call_waits none[HARNESS_CPUS] = {};
	const struct account_call_key taken = { .slot = SLOT, .call = 9999 };
	struct slot_accounts each[HARNESS_CPUS], sum = {};
	uint32_t slot = SLOT;
	pid_t pid;

	f.h->control->calls = 1;
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(f.h->skel->maps.account_calls), &taken,
					     none, BPF_ANY),
			 0);
	pid = harness_start(sleep_ten_times, NULL, f.dir);
	harness_sleep_ms(600);
	assert_int_equal(
		bpf_map_lookup_elem(bpf_map__fd(f.h->skel->maps.account_losses), &slot, each), 0);
	for (int i = 0; i < libbpf_num_possible_cpus(); i++) {
		sum.calls_full += each[i].calls_full;
		sum.calls_full_ns += each[i].calls_full_ns;
	}
	assert_true(sum.calls_full >= 9);
	assert_true(sum.calls_full_ns >= 270 * MSEC);
	harness_kill(pid);
	end(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_waits),
		cmocka_unit_test(counts_on_demand),
		cmocka_unit_test(table_is_full),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
