/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * basket_lock SECONDS PERCENT [CALM_SECONDS LATER_PERCENT [LATER_SECONDS]]: a shop that is busy for
 * PERCENT of a CPU, for CALM_SECONDS; then for LATER_PERCENT, for LATER_SECONDS, then as before. At
 * 0 percent another thread holds the lock of the baskets: no thread works, and no pressure shows
 * it. Stack: main > serve_customers > handle_request > compute_checkout; hold_baskets has the lock.
 */
#include <pthread.h>

#include "workload.h"

static pthread_mutex_t baskets = PTHREAD_MUTEX_INITIALIZER;
static uint64_t deadline_ns, calm_ns, later_ns;
static uint32_t percent, later_percent;
static volatile uint64_t total;

NAMED static void compute_checkout(uint64_t until_ns)
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

NAMED static void handle_request(uint64_t until_ns)
{
	pthread_mutex_lock(&baskets);
	compute_checkout(until_ns > workload_now_ns() ? until_ns : 0);
	pthread_mutex_unlock(&baskets);
	KEEP_FRAME();
}

static bool is_later(void)
{
	uint64_t now_ns = workload_now_ns();

	return now_ns >= calm_ns && now_ns < later_ns;
}

NAMED static void serve_customers(void)
{
	while (workload_now_ns() < deadline_ns) {
		uint32_t share = is_later() && later_percent ? later_percent : percent;

		handle_request(workload_now_ns() + WORKLOAD_SLICE_NS);
		workload_rest(WORKLOAD_SLICE_NS * (100 - share) / share);
	}
}

NAMED static void *hold_baskets(void *unused)
{
	uint64_t now_ns = workload_now_ns();

	if (calm_ns > now_ns)
		workload_rest(calm_ns - now_ns);
	pthread_mutex_lock(&baskets);
	now_ns = workload_now_ns();
	if (later_ns > now_ns)
		workload_rest(later_ns - now_ns);
	pthread_mutex_unlock(&baskets);
	return NULL;
}

int main(int argc, char **argv)
{
	static const char usage[] =
		"basket_lock SECONDS PERCENT [CALM_SECONDS LATER_PERCENT [LATER_SECONDS]]";
	uint32_t calm, later;
	pthread_t holder;

	deadline_ns = workload_deadline(argc, argv, usage);
	percent = workload_number(argc, argv, 2, 1, 1, 99);
	calm = workload_number(argc, argv, 3, WORKLOAD_SECONDS_MAX, 0, WORKLOAD_SECONDS_MAX);
	later_percent = workload_number(argc, argv, 4, 1, 0, 99);
	later = workload_number(argc, argv, 5, WORKLOAD_SECONDS_MAX, 1, WORKLOAD_SECONDS_MAX);
	calm_ns = workload_now_ns() + calm * 1000000000ull;
	later_ns = calm_ns + later * 1000000000ull;
	if (!later_percent && pthread_create(&holder, NULL, hold_baskets, NULL))
		return 1;
	serve_customers();
	return 0;
}
