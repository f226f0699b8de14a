/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/mappings/mappings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/mappings/runtime.h"
#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

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
	size_t at = LOWER_BOUND(i, 0, m->count, m->items[i].end <= address);

	return at < m->count && m->items[at].start <= address ? &m->items[at] : NULL;
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
