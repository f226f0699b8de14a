/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/mappings/mappings.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "consumer/kernel/iterator.h"
#include "consumer/mappings/mapping_records.h"
#include "consumer/mappings/runtime.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* One reading of a process, in as many rounds as the kernel side asks for. */
struct reading {
	struct symbols *symbols;
	struct mappings mappings;
	size_t space;
	uint64_t start_ns;  /* start time that the process must have */
	uint64_t more_from; /* where the kernel side stopped; 0: at the end */
	uint32_t tgid;
	bool seen;    /* the iterator listed the process */
	bool other;   /* another process has the pid */
	bool surplus; /* the mappings did not fit and some were left out */
};

static void reading_done(struct reading *in)
{
	mappings_done(&in->mappings);
}

static int find_module(struct reading *in, const struct mapping_record *record, const char *path,
		       struct module **ret_module)
{
	static const struct file_identity none;
	const struct file_identity identity = { .device = record->device,
						.inode = record->inode,
						.bytes = record->file_bytes,
						.changed_ns = record->changed_ns,
						.written_ns = record->written_ns,
						.generation = record->generation };

	if (record->flags & MAPPING_VDSO)
		return symbols_module(in->symbols, &none, "[vdso]", false, ret_module);
	if (record->flags & MAPPING_ANON)
		return symbols_module(in->symbols, &none, "[anon]", true, ret_module);
	return symbols_module(in->symbols, &identity, *path ? path : "[unknown]", false,
			      ret_module);
}

static int push_mapping(struct reading *in, struct mapping mapping)
{
	struct mappings *m = &in->mappings;

	if (m->count == in->space) {
		size_t space = MAX(in->space * 2, (size_t)32);
		struct mapping *more = realloc(m->items, space * sizeof(*more));

		if (!more)
			return -ENOMEM;
		m->items = more;
		in->space = space;
	}
	symbols_hold(mapping.module);
	m->items[m->count++] = mapping;
	return 0;
}

static int take_mapping(struct reading *in, const struct mapping_record *record, const char *path)
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

static int take_record(void *context, const struct mapping_record *record, const char *path)
{
	struct reading *in = context;

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

static ssize_t take_records(void *context, const uint8_t *data, size_t bytes)
{
	return mapping_records_parse(data, bytes, take_record, context);
}

/*
 * Reads round after round until the kernel side reaches the end. Each round must get further than
 * the one before.
 */
static int read_rounds(const char *path, struct control *control, struct reading *in)
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

/*
 * Returns why the iterator listed nothing: the process has ended, or the kernel side does not list
 * it.
 */
static int why_unseen(const struct reading *in)
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
 * Sorts the mappings and drops what an earlier one covers: a process may be listed once per thread.
 */
static void put_in_order(struct mappings *m)
{
	size_t kept = 0;

	if (m->count > 1)
		qsort(m->items, m->count, sizeof(*m->items), by_start);
	for (size_t i = 0; i < m->count; i++)
		if (kept == 0 || m->items[i].start >= m->items[kept - 1].end)
			m->items[kept++] = m->items[i];
		else
			symbols_release(m->items[i].module, m->read_ns);
	m->count = kept;
}

int mappings_read(const char *vmas_path, struct control *control, uint32_t tgid, uint64_t start_ns,
		  struct symbols *symbols, struct mappings *ret_mappings)
{
	uint32_t tgid_before = __atomic_load_n(&control->vma_tgid, __ATOMIC_RELAXED);
	uint64_t from_before = __atomic_load_n(&control->vma_from, __ATOMIC_RELAXED);
	_cleanup_(reading_done) struct reading in = {
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
		return why_unseen(&in);
	put_in_order(&in.mappings);
	*ret_mappings = in.mappings;
	in.mappings = (struct mappings){ 0 };
	return in.surplus ? -EOVERFLOW : 0;
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
