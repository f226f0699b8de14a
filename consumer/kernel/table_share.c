/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/kernel/table_share.h"

#include "consumer/kernel/pinned_maps.h"

/* Returns the counter of the owner; NULL if there is no such slot. */
static int32_t *find_used(const struct pinned_maps *pins, enum table table, uint32_t slot)
{
	if (slot == NO_SLOT)
		return &pins->control->unwatched[table];
	if (slot < pins->abi.slots)
		slot = pins->slots[slot].payer;
	return slot < pins->abi.slots ? &pins->slots[slot].used[table] : NULL;
}

void table_share_remove(const struct pinned_maps *pins, enum table table, uint32_t slot)
{
	int32_t *used;

	if (!pins->control)
		return;
	used = find_used(pins, table, slot);
	__atomic_fetch_sub(&pins->control->used[table], 1, __ATOMIC_RELAXED);
	if (used)
		__atomic_fetch_sub(used, 1, __ATOMIC_RELAXED);
}

void table_share_reset(const struct pinned_maps *pins, enum table table)
{
	if (!pins->control)
		return;
	pins->control->used[table] = pins->control->unwatched[table] = 0;
	for (uint32_t i = 0; i < pins->abi.slots; i++)
		pins->slots[i].used[table] = 0;
}
