/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwind/unwind_fdes.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "consumer/unwind/unwind_compile.h"
#include "shared/cleanup.h"
#include "shared/macro.h"

#define DIGIT_BITS 10
#define DIGITS	   3
#define BUCKETS	   (1u << DIGIT_BITS)

static_assert(UNWIND_SPAN_MAX <= 1u << (DIGIT_BITS * DIGITS), "so many digits sort every start");

void unwind_fdes_done(struct unwind_fdes *f)
{
	free(f->items);
	*f = (struct unwind_fdes){ 0 };
}

int unwind_fdes_push(struct unwind_fdes *f, struct unwind_fde item)
{
	if (f->count == UNWIND_ENTRIES_MAX)
		return -E2BIG;
	if (f->count == f->space) {
		size_t space = MAX(f->space * 2, (size_t)1024);
		struct unwind_fde *more = realloc(f->items, space * sizeof(*more));

		if (!more)
			return -ENOMEM;
		f->items = more;
		f->space = space;
	}
	f->items[f->count++] = item;
	return 0;
}

static bool is_sorted(const struct unwind_fdes *f)
{
	for (size_t i = 1; i < f->count; i++)
		if (f->items[i - 1].start > f->items[i].start)
			return false;
	return true;
}

/* One pass of a radix sort: keeps the order of those whose digit is the same. */
static void sort_digit(const struct unwind_fde *from, size_t count, unsigned int shift,
		       struct unwind_fde *to)
{
	size_t places[BUCKETS] = { 0 }, sum = 0;

	for (size_t i = 0; i < count; i++)
		places[from[i].start >> shift & (BUCKETS - 1)]++;
	for (size_t i = 0; i < BUCKETS; i++) {
		size_t here = places[i];

		places[i] = sum;
		sum += here;
	}
	for (size_t i = 0; i < count; i++)
		to[places[from[i].start >> shift & (BUCKETS - 1)]++] = from[i];
}

int unwind_fdes_sort(struct unwind_fdes *f)
{
	struct unwind_fde *other;

	if (is_sorted(f))
		return 0;
	other = malloc(f->count * sizeof(*other));
	if (!other)
		return -ENOMEM;
	for (unsigned int digit = 0; digit < DIGITS; digit++) {
		struct unwind_fde *sorted = other;

		sort_digit(f->items, f->count, digit * DIGIT_BITS, sorted);
		other = f->items;
		f->items = sorted;
	}
	f->space = f->count;
	free(other);
	return 0;
}
