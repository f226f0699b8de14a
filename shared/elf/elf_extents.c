/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/elf/elf_extents.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "shared/elf/elf_fdes.h"
#include "shared/elf/x86_flow.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define SYMBOL_BYTES 1024u /* cost of reading the code of one symbol, in bytes of followed code */

struct extents {
	struct elf_gather *gather;
	struct elf_fdes fdes;
	uint64_t left;	       /* bytes of code that may still be followed */
	struct x86_flow *flow; /* owned; NULL before the first use */
	uint8_t code[X86_FLOW_MAX];
};

static void extents_freep(struct extents **x)
{
	if (!*x)
		return;
	elf_fdes_done(&(*x)->fdes);
	free((*x)->flow);
	free(*x);
}

/* Returns whether x86_flow can follow the file's code: only on x86-64. */
static bool has_known_code(const struct elf_reader *e)
{
	return e->wide && e->header.e_machine == EM_X86_64;
}

/*
 * Follows the code of a function from a file offset. Returns its length in bytes, at most `most`
 * and X86_FLOW_MAX; 0: unknown.
 */
static uint32_t follow_code(struct extents *x, uint32_t offset, uint32_t most)
{
	size_t bytes = MIN(X86_FLOW_MAX, most);
	uint32_t found;

	if (x->left == 0) {
		x->gather->cut = true;
		return 0;
	}
	if (elf_reader_at(x->gather->file.image, offset, x->code, bytes) < 0)
		return 0;
	found = (uint32_t)x86_flow_bytes(x->flow, x->code, bytes);
	x->left -= MIN(x->left, (uint64_t)found + SYMBOL_BYTES);
	return found;
}

static int bound_by_code(struct extents *x, struct name_table_entry *entry)
{
	if (x->gather->local)
		return 0;
	if (!has_known_code(&x->gather->file)) {
		entry->size = x->fdes.count ? entry->size : 0;
		return 0;
	}
	if (!x->flow)
		x->flow = malloc(sizeof(*x->flow));
	if (!x->flow)
		return -ENOMEM;
	entry->size = follow_code(x, entry->key, entry->size);
	return 0;
}

static int bound_entry(struct extents *x, struct name_table_entry *entry)
{
	uint64_t address, end, next;

	if (!elf_reader_address(&x->gather->file, entry->key, &address))
		return 0;
	end = elf_fdes_end(&x->fdes, &x->gather->file, address);
	next = end ? end : elf_fdes_next(&x->fdes, address);
	if (next)
		entry->size = (uint32_t)MIN(entry->size, next - address);
	return end ? 0 : bound_by_code(x, entry);
}

static bool has_open(const struct elf_gather *g)
{
	for (size_t i = 0; i < g->entry_count; i++)
		if (g->entries[i].open)
			return true;
	return false;
}

int elf_extents_bound(struct elf_gather *g)
{
	_cleanup_(extents_freep) struct extents *x = NULL;
	int r;

	if (!has_open(g))
		return 0;
	x = malloc(sizeof(*x));
	if (!x)
		return -ENOMEM;
	x->gather = g;
	x->fdes = (struct elf_fdes){ 0 };
	x->left = ELF_EXTENTS_CODE_MAX;
	x->flow = NULL;
	r = elf_fdes_read(&g->file, &x->fdes);
	for (size_t i = 0; r != -ENOMEM && i < g->entry_count; i++)
		r = g->entries[i].open ? bound_entry(x, &g->entries[i]) : 0;
	return r == -ENOMEM ? r : 0;
}
