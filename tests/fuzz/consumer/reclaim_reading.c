/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two readings of the maps of reclaim, whatever is in them: the report stays within its bounds, is
 * of existing kinds, and the ledger is closed.
 */
#include "consumer/evidence/memory/reclaim_times.h"
#include "tests/fuzz/consumer/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define ELEMENTS 24

static struct reclaim_reading read_maps(struct fuzz_input *in)
{
	struct reclaim_reading r = { .n_sums = fuzz_number(in, ELEMENTS),
				     .n_open = fuzz_number(in, ELEMENTS) };

	fuzz_fill(in, &r.at_ns, sizeof(r.at_ns));
	fuzz_fill(in, &r.losses, sizeof(r.losses));
	r.keys = fuzz_table(in, r.n_sums, sizeof(*r.keys));
	r.open_keys = fuzz_table(in, r.n_open, sizeof(*r.open_keys));
	r.open = fuzz_table(in, r.n_open, sizeof(*r.open));
	r.sums = fuzz_table(in, r.n_sums, sizeof(*r.sums));
	return r;
}

static uint64_t sum_neighbours(const struct reclaim_times *all)
{
	uint64_t count = all->more.count;

	for (size_t i = 0; i < all->n_neighbours; i++)
		count += all->neighbours[i].count;
	return count;
}

static void check_times(const struct reclaim_times *all)
{
	fuzz_check(all->count <= RECLAIM_PARTS && all->n_neighbours <= RECLAIM_NEIGHBOURS);
	fuzz_check(all->ledger.attempted == all->ledger.emitted + ledger_lost(&all->ledger));
	for (size_t i = 0; i < all->count; i++) {
		fuzz_check(reclaim_times_kind_name(all->items[i].kind));
		fuzz_check(!i || all->items[i - 1].own.time_ns >= all->items[i].own.time_ns);
	}
	for (size_t i = 0; i < all->n_neighbours; i++)
		fuzz_check(all->neighbours[i].row.cgroup_id);
	(void)reclaim_times_sum(all);
	(void)reclaim_times_ns(all, RECLAIM_LIMIT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const struct slot_owner owner = { fuzz_is_own, NULL };
	struct fuzz_input in = { data, bytes };
	struct reclaim_reading before = read_maps(&in), now = read_maps(&in);
	struct reclaim_times all;

	if (reclaim_times_make(&before, &now, &owner, &all) == 0) {
		uint64_t count = sum_neighbours(&all);

		reclaim_times_close(&all, &fuzz_names);
		fuzz_check(sum_neighbours(&all) == count);
		check_times(&all);
		reclaim_times_done(&all);
	}
	reclaim_maps_forget(&before);
	reclaim_maps_forget(&now);
	return 0;
}
