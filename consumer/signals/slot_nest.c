/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/signals/slot_nest.h"

#include "consumer/kernel/pinned_maps.h"

bool slot_nest_has(const struct pinned_maps *pins, uint32_t of, uint32_t slot)
{
	for (int i = 0; i < WATCHES_NESTED; i++) {
		if (of == slot)
			return true;
		if (of >= pins->abi.slots || !pins->slots[of].outer)
			return false;
		of = pins->slots[of].outer - 1;
	}
	return false;
}

bool slot_nest_holds(const void *nest, uint32_t of)
{
	const struct slot_nest *n = nest;

	return slot_nest_has(n->pins, of, n->slot);
}

bool slot_nest_is_captured(const struct pinned_maps *pins, uint32_t slot)
{
	for (int i = 0; i < WATCHES_NESTED && slot < pins->abi.slots; i++) {
		if (pins->slots[slot].state == SLOT_CAPTURE)
			return true;
		if (!pins->slots[slot].outer)
			return false;
		slot = pins->slots[slot].outer - 1;
	}
	return false;
}
