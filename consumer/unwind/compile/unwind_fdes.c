/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwind/compile/unwind_fdes.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "consumer/unwind/compile/unwind_compile.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define DIGIT_BITS 10
#define DIGITS	   3
#define BUCKETS	   (1u << DIGIT_BITS)

static_assert(UNWIND_SPAN_MAX <= 1u << (DIGIT_BITS * DIGITS), "so many digits sort every start");

void unwind_fdes_done(struct unwind_fdes *f)
{
	free(f->items);
	*f = (struct unwind_fdes){ 0 };
}

int unwind_fdes_grow(struct unwind_fdes *f)
{
	size_t space = MIN(MAX(f->space * 2, (size_t)1024), (size_t)UNWIND_ENTRIES_MAX);
	struct unwind_fde *more;

	if (f->count == UNWIND_ENTRIES_MAX)
		return -E2BIG;
	more = realloc(f->items, space * sizeof(*more));
	if (!more)
		return -ENOMEM;
	f->items = more;
	f->space = space;
	return 0;
}

/* Returns the bits that are set in any start: a digit without set bits needs no pass. */
static uint32_t bits_of(const struct unwind_fdes *f, bool *ret_sorted)
{
	uint32_t bits = 0, before = 0;
	bool sorted = true;

	for (size_t i = 0; i < f->count; i++) {
		uint32_t start = f->items[i].start;

		sorted &= before <= start;
		bits |= start;
		before = start;
	}
	*ret_sorted = sorted;
	return bits;
}

/* Runs one pass of a radix sort, which keeps the order of items with the same digit. */
static void sort_digit(const struct unwind_fde *from, size_t count, unsigned int shift,
		       struct unwind_fde *to)
{
	uint32_t places[BUCKETS] = { 0 }, sum = 0;

	for (size_t i = 0; i < count; i++)
		places[from[i].start >> shift & (BUCKETS - 1)]++;
	for (size_t i = 0; i < BUCKETS; i++) {
		uint32_t here = places[i];

		places[i] = sum;
		sum += here;
	}
	for (size_t i = 0; i < count; i++)
		to[places[from[i].start >> shift & (BUCKETS - 1)]++] = from[i];
}

int unwind_fdes_sort(struct unwind_fdes *f)
{
	struct unwind_fde *other;
	uint32_t bits;
	bool sorted;

	bits = bits_of(f, &sorted);
	if (sorted)
		return 0;
	other = malloc(f->count * sizeof(*other));
	if (!other)
		return -ENOMEM;
	for (unsigned int shift = 0; shift < DIGITS * DIGIT_BITS; shift += DIGIT_BITS) {
		struct unwind_fde *from = f->items;

		if ((bits >> shift & (BUCKETS - 1)) == 0)
			continue;
		sort_digit(from, f->count, shift, other);
		f->items = other;
		other = from;
	}
	f->space = f->count;
	free(other);
	return 0;
}
