/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of looks at sockets, and two readings of their counts, with any contents: the report
 * stays within its bounds, and the ledger is closed.
 */
#include "consumer/evidence/sockets/socket_passes.h"
#include "consumer/evidence/sockets/socket_peers.h"
#include "tests/fuzz/consumer/fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define RECORDS	 48
#define ELEMENTS 24
#define SLOTS	 64
#define CUT	 0x80 /* of the byte behind a record: its look ends, and was cut */
#define ENDS	 0x40 /* its look ends */

static struct socket_reading read_maps(struct fuzz_input *in)
{
	struct socket_reading r = { .count = fuzz_number(in, ELEMENTS) };

	fuzz_fill(in, &r.losses, sizeof(r.losses));
	r.keys = fuzz_table(in, r.count, sizeof(*r.keys));
	r.sums = fuzz_table(in, r.count, sizeof(*r.sums));
	return r;
}

static void look_at_all(struct fuzz_input *in, struct socket_view *view)
{
	uint32_t records = fuzz_number(in, RECORDS);

	for (uint32_t i = 0; i < records; i++) {
		struct socket_record record;
		uint32_t then;

		fuzz_fill(in, &record, sizeof(record));
		then = fuzz_number(in, UINT8_MAX);
		if (socket_passes_is_sane(&record, SLOTS))
			socket_view_add(view, &record);
		if (then & ENDS)
			socket_view_end_look(view, then & CUT);
	}
	socket_view_end_look(view, false);
}

static void check_peers(const struct socket_peers *peers)
{
	fuzz_check(peers->count <= SOCKET_PEERS_TOLD);
	fuzz_check(peers->ledger.attempted == peers->ledger.emitted + ledger_lost(&peers->ledger));
	for (size_t i = 0; i < peers->count; i++) {
		const struct socket_key *key = &peers->items[i].key;

		fuzz_check(key->way < SOCKET_WAYS_ && !key->slot);
		fuzz_check(socket_peers_find(peers, key->way, key->family, key->address,
					     key->port) == &peers->items[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const struct slot_owner owner = { fuzz_is_own, NULL };
	struct fuzz_input in = { data, bytes };
	struct socket_reading before, now;
	struct socket_peers peers;
	struct socket_view view;

	if (socket_view_init(&view) < 0)
		return 0;
	look_at_all(&in, &view);
	before = read_maps(&in);
	now = read_maps(&in);
	if (socket_peers_make(&view, &before, &now, &owner, &peers) == 0) {
		check_peers(&peers);
		socket_peers_done(&peers);
	}
	socket_maps_forget(&before);
	socket_maps_forget(&now);
	socket_view_done(&view);
	return 0;
}
