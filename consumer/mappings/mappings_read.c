/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/mappings/mappings_read.h"

#include <errno.h>

#include "consumer/kernel/iterator.h"
#include "consumer/mappings/mapping_reading.h"
#include "consumer/mappings/mapping_records.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"

static int take_record(void *context, const struct mapping_record *record, const char *path)
{
	return mapping_reading_take(context, record, path);
}

static ssize_t take_records(void *context, const uint8_t *data, size_t bytes)
{
	return mapping_records_parse(data, bytes, take_record, context);
}

/*
 * Reads round after round until the kernel side reaches the end. Each round must get further than
 * the previous one.
 */
static int read_rounds(const char *path, struct control *control, struct mapping_reading *in)
{
	uint64_t from = 0;

	for (unsigned int i = 0; i < MAPPINGS_ROUNDS_MAX; i++) {
		int r;

		__atomic_store_n(&control->vma_from, from, __ATOMIC_RELAXED);
		in->more_from = 0;
		r = iterator_read(path, take_records, in);
		if (r < 0)
			return r;
		if (in->more_from == 0)
			return 0;
		if (in->more_from <= from)
			return -EBADMSG;
		from = in->more_from;
	}
	in->surplus = true;
	return 0;
}

int mappings_read(const char *vmas_path, struct control *control, uint32_t tgid, uint64_t start_ns,
		  struct symbols *symbols, struct mappings *ret_mappings)
{
	uint32_t tgid_before = __atomic_load_n(&control->vma_tgid, __ATOMIC_RELAXED);
	uint64_t from_before = __atomic_load_n(&control->vma_from, __ATOMIC_RELAXED);
	_cleanup_(mapping_reading_done) struct mapping_reading in = {
		.symbols = symbols,
		.start_ns = start_ns,
		.tgid = tgid,
		.mappings.read_ns = clock_mono_ns(),
	};
	int r;

	__atomic_store_n(&control->vma_tgid, tgid, __ATOMIC_RELAXED);
	r = read_rounds(vmas_path, control, &in);
	__atomic_store_n(&control->vma_tgid, tgid_before, __ATOMIC_RELAXED);
	__atomic_store_n(&control->vma_from, from_before, __ATOMIC_RELAXED);
	if (r < 0)
		return r;
	if (!in.seen)
		return mapping_reading_why_unseen(&in);
	return mapping_reading_end(&in, ret_mappings);
}
