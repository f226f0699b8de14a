/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/mappings/mappings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/kernel/iterator.h"
#include "consumer/mappings/mapping_reading.h"
#include "consumer/mappings/mapping_records.h"
#include "consumer/mappings/runtime.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

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
 * the one before.
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

void mappings_done(struct mappings *m)
{
	uint64_t now_ns = m->count || m->exe ? clock_mono_ns() : 0;

	for (size_t i = 0; i < m->count; i++)
		symbols_release(m->items[i].module, now_ns);
	if (m->exe)
		symbols_release(m->exe, now_ns);
	free(m->items);
	*m = (struct mappings){ 0 };
}

void mappings_carry(const struct mappings *earlier, struct mappings *m)
{
	uint64_t seen_ns = clock_mono_ns();

	for (size_t i = 0; i < m->count; i++) {
		struct mapping *now = &m->items[i];
		const struct mapping *then = mappings_find(earlier, now->start);
		bool same = then && then->start == now->start && then->end == now->end &&
			    then->file_offset == now->file_offset && then->module == now->module;

		now->since_ns = same ? then->since_ns : seen_ns;
	}
}

int mappings_copy(const struct mappings *from, struct mappings *to)
{
	struct mapping *items = malloc(MAX(from->count, (size_t)1) * sizeof(*items));

	if (!items)
		return -ENOMEM;
	memcpy(items, from->items, from->count * sizeof(*items));
	for (size_t i = 0; i < from->count; i++)
		symbols_hold(items[i].module);
	if (from->exe)
		symbols_hold(from->exe);
	mappings_done(to);
	*to = *from;
	to->items = items;
	return 0;
}

const struct mapping *mappings_find(const struct mappings *m, uint64_t address)
{
	size_t low = 0, high = m->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (m->items[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < m->count && m->items[low].start <= address ? &m->items[low] : NULL;
}

void mappings_runtime(const struct mappings *m, struct runtime *ret_runtime)
{
	if (m->exe && runtime_of_path(m->exe->path, true, ret_runtime))
		return;
	for (size_t i = 0; i < m->count; i++) {
		const struct module *module = m->items[i].module;

		if (!module->anonymous && runtime_of_path(module->path, false, ret_runtime))
			return;
	}
	*ret_runtime = (struct runtime){ 0 };
}
