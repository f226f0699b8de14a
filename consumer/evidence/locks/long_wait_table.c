/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/locks/long_wait_table.h"

#include <bpf/bpf.h>
#include <stdlib.h>

#include "consumer/kernel/pinned_maps.h"
#include "consumer/kernel/table_share.h"
#include "consumer/signals/slot_nest.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"

int long_wait_table_read(const struct pinned_maps *pins, struct long_wait_elements *e)
{
	return map_batch_part(pins->signal_fd[PINNED_MAP_long_waits], e->keys, e->values,
			      MAP_BATCH_PART, &e->part);
}

/* Moves the waits of a part that no session takes to the front. */
static void choose_idle(const struct pinned_maps *pins, struct long_wait_elements *e)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < e->part.count; i++)
		if (!slot_nest_is_captured(pins, e->values[i].slot)) {
			e->values[n] = e->values[i];
			e->keys[n++] = e->keys[i];
		}
	e->part.count = n;
}

/* Removes the waits of the next part. Returns false at the end. */
static bool remove_part(const struct pinned_maps *pins, struct long_wait_elements *e, bool all)
{
	if (long_wait_table_read(pins, e) < 0)
		return false;
	if (!all)
		choose_idle(pins, e);
	if (e->part.count)
		bpf_map_delete_batch(pins->signal_fd[PINNED_MAP_long_waits], e->keys,
				     &e->part.count, NULL);
	for (uint32_t i = 0; i < e->part.count; i++)
		table_share_remove(pins, TABLE_LONG_WAITS, e->values[i].slot);
	return e->part.more;
}

void long_wait_table_sweep_begin(struct long_wait_sweep *s)
{
	long_wait_table_sweep_stop(s);
	s->elements = calloc(1, sizeof(*s->elements));
}

void long_wait_table_sweep_step(struct long_wait_sweep *s, const struct pinned_maps *pins,
				uint64_t until_ns)
{
	while (s->elements) {
		if (!remove_part(pins, s->elements, false))
			long_wait_table_sweep_stop(s);
		if (clock_mono_ns() >= until_ns)
			return;
	}
}

void long_wait_table_sweep_stop(struct long_wait_sweep *s)
{
	free(TAKE_PTR(s->elements));
}

void long_wait_table_empty(const struct pinned_maps *pins)
{
	_cleanup_free_ struct long_wait_elements *e = calloc(1, sizeof(*e));

	while (e && remove_part(pins, e, true))
		;
	table_share_reset(pins, TABLE_LONG_WAITS);
}
