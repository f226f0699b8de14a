/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_fdes.h: the list of a file's FDEs, sorted by address before they are run. It holds only
 * the start and the offset of each: a large file has 80,000, and reading one again costs less than
 * moving more data.
 */
#ifndef TROCAR_CONSUMER_UNWIND_COMPILE_UNWIND_FDES_H
#define TROCAR_CONSUMER_UNWIND_COMPILE_UNWIND_FDES_H

#include <stddef.h>
#include <stdint.h>

struct unwind_fde {
	uint32_t start; /* of its text, minus the table's base; below UNWIND_SPAN_MAX */
	uint32_t at;	/* its offset in the section */
};

struct unwind_fdes {
	struct unwind_fde *items; /* owned */
	size_t count, space;
};

/* Makes space for one more. Returns 0; -E2BIG beyond UNWIND_ENTRIES_MAX; -ENOMEM. */
int unwind_fdes_grow(struct unwind_fdes *f);

/* Appends an item. Errors as unwind_fdes_grow. Inline, because it is called for every function. */
static inline int unwind_fdes_push(struct unwind_fdes *f, struct unwind_fde item)
{
	int r;

	if (f->count == f->space) {
		r = unwind_fdes_grow(f);
		if (r < 0)
			return r;
	}
	f->items[f->count++] = item;
	return 0;
}

/* Sorts by start; items with equal starts keep their order. Returns 0 or -ENOMEM. */
int unwind_fdes_sort(struct unwind_fdes *f);
void unwind_fdes_done(struct unwind_fdes *f);

#endif
