/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/mappings/mapping_reading.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "consumer/symbols/vdso.h"
#include "shared/tools/array.h"
#include "shared/tools/macro.h"

void mapping_reading_done(struct mapping_reading *in)
{
	mappings_done(&in->mappings);
}

static int find_module(struct mapping_reading *in, const struct mapping_record *record,
		       const char *path, struct module **ret_module)
{
	static const struct file_identity none;
	const struct file_identity identity = { .device = record->device,
						.inode = record->inode,
						.bytes = record->file_bytes,
						.changed_ns = record->changed_ns,
						.written_ns = record->written_ns,
						.generation = record->generation };

	const struct file_identity vdso = vdso_identity(record->start, record->end);

	if (record->flags & MAPPING_VDSO)
		return symbols_module(in->symbols, &vdso, VDSO_PATH, false, ret_module);
	if (record->flags & MAPPING_ANON)
		return symbols_module(in->symbols, &none, "[anon]", true, ret_module);
	return symbols_module(in->symbols, &identity, *path ? path : "[unknown]", false,
			      ret_module);
}

static int push_mapping(struct mapping_reading *in, struct mapping mapping)
{
	struct mappings *m = &in->mappings;

	if (array_reserve(&m->items, &in->space, m->count + 1, sizeof(*m->items)) < 0)
		return -ENOMEM;
	symbols_hold(mapping.module);
	m->items[m->count++] = mapping;
	return 0;
}

static int take_mapping(struct mapping_reading *in, const struct mapping_record *record,
			const char *path)
{
	struct mapping mapping = { .start = record->start,
				   .end = record->end,
				   .file_offset = record->file_offset };
	int r;

	if (in->mappings.count == MAPPINGS_MAX) {
		in->surplus = true;
		return 0;
	}
	r = find_module(in, record, path, &mapping.module);
	if (r == -ENOSPC) {
		in->surplus = true;
		return 0;
	}
	if (r < 0)
		return r;
	if (mapping.module->anonymous)
		mapping.file_offset = record->start; /* offsets in it are addresses: perf_map.h */
	in->mappings.compiled |= mapping.module->anonymous;
	if (!mapping.module->anonymous && record->inode != 0)
		symbols_place(in->symbols, mapping.module,
			      &(struct process_key){ .tgid = in->tgid, .start_ns = in->start_ns },
			      record->start, record->end);
	if ((record->flags & MAPPING_IS_EXE) && !in->mappings.exe) {
		in->mappings.exe = mapping.module;
		symbols_hold(mapping.module);
	}
	return push_mapping(in, mapping);
}

int mapping_reading_take(struct mapping_reading *in, const struct mapping_record *record,
			 const char *path)
{
	if (record->tgid != in->tgid)
		return 0;
	if (record->start_ns != in->start_ns) {
		in->other = true;
		return 0;
	}
	in->seen = true;
	if (record->flags & MAPPING_MORE) {
		in->more_from = record->end;
		return 0;
	}
	if (in->mappings.count && record->image != in->mappings.image)
		return -ESTALE;
	in->mappings.image = record->image;
	return take_mapping(in, record, path);
}

int mapping_reading_why_unseen(const struct mapping_reading *in)
{
	char path[32];
	struct stat st;

	if (in->other)
		return -ESRCH;
	snprintf(path, sizeof(path), "/proc/%u", in->tgid);
	return stat(path, &st) < 0 && errno == ENOENT ? -ESRCH : -EACCES;
}

static int by_start(const void *a, const void *b)
{
	const struct mapping *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/*
 * Sorts the mappings and drops those that an earlier one covers: a process may be listed once per
 * thread.
 */
static void put_in_order(struct mappings *m)
{
	size_t kept = 0;

	array_sort(m->items, m->count, sizeof(*m->items), by_start);
	for (size_t i = 0; i < m->count; i++)
		if (kept == 0 || m->items[i].start >= m->items[kept - 1].end)
			m->items[kept++] = m->items[i];
		else
			symbols_release(m->items[i].module, m->read_ns);
	m->count = kept;
}

int mapping_reading_end(struct mapping_reading *in, struct mappings *ret_mappings)
{
	put_in_order(&in->mappings);
	*ret_mappings = in->mappings;
	in->mappings = (struct mappings){ 0 };
	return in->surplus ? -EOVERFLOW : 0;
}
