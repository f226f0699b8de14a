/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two readings of the maps of requests to disks, whatever is in them: the report stays within its
 * bounds, is of existing operations, and the ledger is closed.
 */
#include "consumer/evidence/disks/block_requests.h"
#include "tests/fuzz/consumer/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define ELEMENTS 24

static struct block_reading read_maps(struct fuzz_input *in)
{
	struct block_reading r = { .n_sums = fuzz_number(in, ELEMENTS),
				   .n_open = fuzz_number(in, ELEMENTS) };

	fuzz_fill(in, &r.at_ns, sizeof(r.at_ns));
	fuzz_fill(in, &r.losses, sizeof(r.losses));
	r.keys = fuzz_table(in, r.n_sums, sizeof(*r.keys));
	r.open = fuzz_table(in, r.n_open, sizeof(*r.open));
	r.sums = fuzz_table(in, r.n_sums, sizeof(*r.sums));
	return r;
}

static uint64_t sum_neighbours(const struct block_requests *all)
{
	uint64_t requests = all->more.requests;

	for (size_t i = 0; i < all->n_neighbours; i++)
		requests += all->neighbours[i].requests;
	return requests;
}

static void check_requests(const struct block_requests *all)
{
	fuzz_check(all->count <= BLOCK_DISKS && all->n_neighbours <= BLOCK_NEIGHBOURS);
	fuzz_check(all->ledger.attempted == all->ledger.emitted + ledger_lost(&all->ledger));
	for (size_t i = 0; i < all->count; i++)
		fuzz_check(block_requests_op_name(all->items[i].op));
	(void)block_requests_sum(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const struct slot_owner owner = { fuzz_is_own, NULL };
	struct fuzz_input in = { data, bytes };
	struct block_reading before = read_maps(&in), now = read_maps(&in);
	struct block_requests all;

	if (block_requests_make(&before, &now, &owner, &all) == 0) {
		uint64_t requests = sum_neighbours(&all);

		block_requests_close(&all, &fuzz_names);
		fuzz_check(sum_neighbours(&all) == requests);
		check_requests(&all);
		block_requests_done(&all);
	}
	block_maps_forget(&before);
	block_maps_forget(&now);
	return 0;
}
