/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * burn_cpu SECONDS [THREADS [CALM_SECONDS]]: a shop that totals baskets. One thread at a quarter of
 * a CPU for CALM_SECONDS, then THREADS threads without rest: a storm that meets a CPU quota.
 * Stack: main or serve_customers > handle_request > compute_checkout > spin_on_checkout_total.
 */
#include <pthread.h>

#include "workload.h"

#define THREADS_MAX 64u

static uint64_t deadline_ns;
static volatile uint64_t total;

NAMED static void spin_on_checkout_total(uint64_t until_ns)
{
	uint64_t sum = 1;

	while (workload_now_ns() < until_ns) {
		for (uint32_t i = 0; i < WORKLOAD_TURNS; i++) {
			sum = sum * 6364136223846793005ull + 1442695040888963407ull;
			KEEP_FRAME();
		}
	}
	total = sum;
}

NAMED static void compute_checkout(uint64_t until_ns)
{
	spin_on_checkout_total(until_ns);
	KEEP_FRAME();
}

NAMED static void handle_request(uint64_t until_ns)
{
	compute_checkout(until_ns);
	KEEP_FRAME();
}

NAMED static void *serve_customers(void *unused)
{
	while (workload_now_ns() < deadline_ns)
		handle_request(workload_now_ns() + WORKLOAD_SLICE_NS);
	return NULL;
}

NAMED static void serve_quiet_hours(uint64_t until_ns)
{
	while (workload_now_ns() < until_ns) {
		handle_request(workload_now_ns() + WORKLOAD_SLICE_NS);
		workload_rest(WORKLOAD_REST_NS);
	}
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS_MAX];
	uint32_t wanted, calm, started = 0;

	deadline_ns = workload_deadline(argc, argv, "burn_cpu SECONDS [THREADS [CALM_SECONDS]]");
	wanted = workload_number(argc, argv, 2, 1, 1, THREADS_MAX);
	calm = workload_number(argc, argv, 3, 0, 0, WORKLOAD_SECONDS_MAX);
	serve_quiet_hours(workload_now_ns() + calm * 1000000000ull);
	while (started + 1 < wanted) {
		if (pthread_create(&threads[started], NULL, serve_customers, NULL))
			return 1;
		started++;
	}
	serve_customers(NULL);
	while (started)
		pthread_join(threads[--started], NULL);
	return 0;
}
