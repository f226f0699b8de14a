/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/sampling/sample_build_ids.h"

#include "consumer/sampling/sample_record.h"

static void add_frame(struct symbols *symbols, const struct sample *record,
		      const struct mappings *maps, const struct frame_build_id *id,
		      uint64_t address, struct sample_build_ids *ids)
{
	const struct mapping *m = mappings_find(maps, address);
	bool known = id->status == 1 && id->offset_or_ip <= INT64_MAX, other;

	if (!m || m->module->anonymous || m->module->identity.inode == 0)
		return;
	if (id->status == 1 && mapping_offset(m, address) != id->offset_or_ip)
		return; /* something else was mapped there when the sample was taken */
	other = known && !symbols_is_build(symbols, m->module, id->build_id, BUILD_ID_BYTES);
	if (!other && !symbols_lacks_build_id(m->module))
		return;
	ids->items[ids->count++] = (struct sample_build_id){
		.module = m->module,
		.build_id = known ? id->build_id : NULL,
		.other = other,
		.confirmed = m->since_ns <= record->time_ns && maps->read_ns >= record->time_ns,
	};
}

void sample_build_ids_find(struct symbols *symbols, const struct sample *record,
			   const struct mappings *maps, struct sample_build_ids *ret_ids)
{
	const struct frame_build_id *all = sample_record_ids(record);
	const struct frame_build_id *leaf = sample_record_leaf_id(record);
	const uint64_t *addresses = sample_record_addresses(record);

	ret_ids->count = 0;
	if (maps->image != record->image)
		return;
	for (uint16_t i = 0; all && addresses && i < record->user_frames; i++)
		add_frame(symbols, record, maps, &all[i], addresses[i], ret_ids);
	/*
	 * When the leaf's file was replaced, the table names another module than the kernel does.
	 */
	if (leaf && record->user_frames > 0 && !(record->flags & SAMPLE_LEAF_CHANGED))
		add_frame(symbols, record, maps, leaf, addresses[0], ret_ids);
}
