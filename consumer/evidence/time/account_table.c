/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/time/account_table.h"

#include <bpf/bpf.h>
#include <stdlib.h>

#include "consumer/kernel/pinned_maps.h"
#include "consumer/kernel/table_share.h"
#include "consumer/signals/slot_nest.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"

_Static_assert(ACCOUNTS_NEAR <= MAP_BATCH_PART, "the near accounts are one part");

/* Reads the first part: the contents of the array. */
static void read_near(const struct pinned_maps *pins, struct account_elements *e)
{
	e->part.count = 0;
	for (uint32_t i = 0; pins->accounts_near && i < ACCOUNTS_NEAR; i++) {
		const struct near_account *near = &pins->accounts_near[i];
		uint64_t owner = __atomic_load_n(&near->owner, __ATOMIC_ACQUIRE);

		if (!(owner & ACCOUNT_NEAR_READY))
			continue;
		e->keys[e->part.count] = (struct account_key){ .tid = (uint32_t)owner };
		e->values[e->part.count++] = near->times;
	}
	e->near = e->near_read = e->part.more = true;
}

int account_table_read(const struct pinned_maps *pins, struct account_elements *e)
{
	if (!e->near_read) {
		read_near(pins, e);
		return 0;
	}
	e->near = false;
	return map_batch_part(pins->signal_fd[PINNED_MAP_accounts], e->keys, e->values,
			      MAP_BATCH_PART, &e->part);
}

/* Moves the accounts of a part that no session takes to the front. */
static void choose_idle(const struct pinned_maps *pins, struct account_elements *e)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < e->part.count; i++)
		if (!slot_nest_is_captured(pins, e->values[i].account.slot)) {
			e->values[n].account.slot = e->values[i].account.slot;
			e->keys[n++] = e->keys[i];
		}
	e->part.count = n;
}

/* Frees the element, unless the kernel side has done so. */
static void free_near(const struct pinned_maps *pins, uint32_t tid)
{
	__u64 owner = tid | ACCOUNT_NEAR_READY;

	__atomic_compare_exchange_n(&pins->accounts_near[tid % ACCOUNTS_NEAR].owner, &owner, 0,
				    false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void remove_keys(const struct pinned_maps *pins, struct account_elements *e)
{
	if (e->near) {
		for (uint32_t i = 0; i < e->part.count; i++)
			free_near(pins, e->keys[i].tid);
		return;
	}
	if (e->part.count)
		bpf_map_delete_batch(pins->signal_fd[PINNED_MAP_accounts], e->keys, &e->part.count,
				     NULL);
	for (uint32_t i = 0; i < e->part.count; i++)
		table_share_remove(pins, TABLE_ACCOUNTS, e->values[i].account.slot);
}

/* Removes the accounts of the next part. Returns false at the end. */
static bool remove_part(const struct pinned_maps *pins, struct account_elements *e, bool all)
{
	if (account_table_read(pins, e) < 0)
		return false;
	if (!all)
		choose_idle(pins, e);
	remove_keys(pins, e);
	return e->part.more;
}

void account_table_sweep_begin(struct account_sweep *s)
{
	account_table_sweep_stop(s);
	s->elements = calloc(1, sizeof(*s->elements));
}

void account_table_sweep_step(struct account_sweep *s, const struct pinned_maps *pins,
			      uint64_t until_ns)
{
	while (s->elements) {
		if (!remove_part(pins, s->elements, false))
			account_table_sweep_stop(s);
		if (clock_mono_ns() >= until_ns)
			return;
	}
}

void account_table_sweep_stop(struct account_sweep *s)
{
	free(TAKE_PTR(s->elements));
}

void account_table_empty(const struct pinned_maps *pins)
{
	_cleanup_free_ struct account_elements *e = calloc(1, sizeof(*e));

	while (e && remove_part(pins, e, true))
		;
	table_share_reset(pins, TABLE_ACCOUNTS);
}
