/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/elf/name_table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define RADIX_BITS  11
#define SMALL_BITS  8	 /* for short tables: clearing the buckets takes time */
#define SMALL_COUNT 4096 /* a table with fewer entries is short */
#define UNDERSCORES 15	 /* leading underscores that the rank distinguishes */

enum rank_bit {
	RANK_SIZED = 1u << 4,
	RANK_FUNCTION = 1u << 5,
	RANK_GLOBAL = 1u << 6,
};

uint16_t name_table_rank(const char *text, int global, int function, int sized)
{
	unsigned int rank = UNDERSCORES;

	while (rank > 0 && text[UNDERSCORES - rank] == '_') /* strspn(3) would be unbounded */
		rank--;
	return (uint16_t)(rank | (global ? RANK_GLOBAL : 0) | (function ? RANK_FUNCTION : 0) |
			  (sized ? RANK_SIZED : 0));
}

/*
 * Sorts stably by `bits` bits of the key, from bit `shift` on. False: all keys agree in them, and
 * nothing was copied.
 */
static bool sort_pass(const struct name_table_entry *from, struct name_table_entry *to,
		      size_t count, unsigned int shift, unsigned int bits)
{
	uint32_t places[1u << RADIX_BITS], buckets = 1u << bits;
	uint32_t mask = buckets - 1, sum = 0;

	memset(places, 0, buckets * sizeof(*places));
	for (size_t i = 0; i < count; i++)
		places[from[i].key >> shift & mask]++;
	if (places[from[0].key >> shift & mask] == count)
		return false;
	for (size_t i = 0; i < buckets; i++) {
		uint32_t here = places[i];

		places[i] = sum;
		sum += here;
	}
	for (size_t i = 0; i < count; i++)
		to[places[from[i].key >> shift & mask]++] = from[i];
	return true;
}

/*
 * Returns the bits in which keys differ; 0: the keys are already sorted, like most of the kernel's.
 */
static uint32_t find_unsorted_bits(const struct name_table_entry *entries, size_t count)
{
	uint32_t differ = 0;
	bool sorted = true;

	for (size_t i = 1; i < count; i++) {
		differ |= entries[i].key ^ entries[0].key;
		sorted = sorted && entries[i].key >= entries[i - 1].key;
	}
	return sorted ? 0 : differ;
}

/*
 * Sorts stably by key, with a radix sort: a comparison sort would take most of the time for a large
 * file. Functions are aligned and close together, so few bits differ and few passes are needed.
 */
static int sort_entries(struct name_table_entry *entries, size_t count)
{
	uint32_t differ = find_unsorted_bits(entries, count);
	unsigned int most = count < SMALL_COUNT ? SMALL_BITS : RADIX_BITS, low, width, passes, bits;
	struct name_table_entry *from = entries, *to;
	_cleanup_free_ struct name_table_entry *room = NULL;

	if (differ == 0)
		return 0;
	room = to = calloc(count, sizeof(*room));
	if (!room)
		return -ENOMEM;
	low = (unsigned int)__builtin_ctz(differ);
	width = 32 - (unsigned int)__builtin_clz(differ) - low;
	passes = (width + most - 1) / most;
	bits = (width + passes - 1) / passes;
	for (unsigned int shift = low; shift < low + width; shift += bits) {
		if (sort_pass(from, to, count, shift, bits)) {
			struct name_table_entry *swap = from;

			from = to;
			to = swap;
		}
	}
	if (from != entries)
		memcpy(entries, from, count * sizeof(*entries));
	return 0;
}

/*
 * Returns whether `a` is a better name than `b`: the one with the higher rank, then the shorter
 * one, then the first one in byte order. So the order of the symbols, which a linker chooses
 * freely, has no effect.
 */
static bool is_better(const struct name_table_entry *a, const struct name_table_entry *b,
		      const struct name_table_texts *texts)
{
	size_t a_bytes, b_bytes;

	if (a->rank != b->rank || a->text >= texts->bytes || b->text >= texts->bytes)
		return a->rank > b->rank;
	a_bytes = strnlen(texts->strings + a->text,
			  MIN(texts->bytes - a->text, (size_t)NAME_TABLE_TEXT_BYTES));
	b_bytes = strnlen(texts->strings + b->text,
			  MIN(texts->bytes - b->text, (size_t)NAME_TABLE_TEXT_BYTES));
	if (a_bytes != b_bytes)
		return a_bytes < b_bytes;
	return memcmp(texts->strings + a->text, texts->strings + b->text, a_bytes) < 0;
}

/*
 * Keeps the best entry per key, and no label inside a function. Returns the number of kept entries.
 */
static size_t keep_best_entries(struct name_table_entry *entries, size_t count,
				const struct name_table_texts *texts)
{
	uint64_t reach = 0; /* highest end of the sized symbols so far */
	size_t kept = 0;

	for (size_t i = 0, next; i < count; i = next) {
		size_t best = i;

		for (next = i + 1; next < count && entries[next].key == entries[i].key; next++)
			if (is_better(&entries[next], &entries[best], texts))
				best = next;
		if (entries[best].open && entries[best].key < reach)
			continue;
		if (!entries[best].open)
			reach = MAX(reach, (uint64_t)entries[best].key + entries[best].size);
		entries[kept++] = entries[best];
	}
	return kept;
}

/*
 * Returns the bytes of `parts` strings from `text` on, NULs included. Each string is cut at
 * NAME_TABLE_TEXT_BYTES.
 */
static size_t measure_text(const char *text, const char *end, unsigned int parts)
{
	size_t bytes = 0;

	while (parts--) {
		bytes += strnlen(text + bytes, MIN((size_t)(end - text) - bytes,
						   (size_t)NAME_TABLE_TEXT_BYTES - 1)) +
			 1;
		if (bytes >= (size_t)(end - text))
			break;
	}
	return bytes;
}

/*
 * Copies the kept names into a new blob, and makes the entries refer to it. The rank is no longer
 * needed: between the two loops its field holds the length, which fits (two parts).
 */
static int copy_texts(struct name_table_entry *entries, size_t count,
		      const struct name_table_texts *texts, struct name_table *n)
{
	const char *strings = texts->strings;
	size_t total = 0, at = 0;

	for (size_t i = 0; i < count; i++) {
		if (entries[i].text >= texts->bytes)
			return -EINVAL;
		entries[i].rank = (uint16_t)measure_text(strings + entries[i].text,
							 strings + texts->bytes, texts->parts);
		total += entries[i].rank;
		if (total > texts->kept_max)
			return -EFBIG;
	}
	n->blob = malloc(total + 1);
	if (!n->blob)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		size_t bytes = entries[i].rank;

		memcpy(n->blob + at, strings + entries[i].text, bytes);
		n->blob[at + bytes - 1] = '\0'; /* a cut name has lost its NUL */
		entries[i].text = (uint32_t)at;
		at += bytes;
	}
	n->blob[at] = '\0';
	n->blob_bytes = at + 1;
	return 0;
}

static int fill_table(struct name_table *n, const struct name_table_entry *entries, size_t count)
{
	n->keys = malloc(3 * MAX(count, (size_t)1) * sizeof(*n->keys));
	if (!n->keys)
		return -ENOMEM;
	n->sizes = n->keys + count;
	n->texts = n->sizes + count;
	n->count = count;
	for (size_t i = 0; i < count; i++) {
		uint32_t size = entries[i].size;

		if (entries[i].open && i + 1 < count)
			size = MIN(size, entries[i + 1].key - entries[i].key);
		n->keys[i] = entries[i].key;
		n->sizes[i] = size;
		n->texts[i] = entries[i].text;
	}
	return 0;
}

int name_table_build(struct name_table_entry *entries, size_t count,
		     const struct name_table_texts *texts, struct name_table *ret_names)
{
	_cleanup_(name_table_done) struct name_table n = { 0 };
	int r;

	if (count > NAME_TABLE_COUNT_MAX)
		return -EFBIG;
	if (count > 0) {
		r = sort_entries(entries, count);
		if (r < 0)
			return r;
		count = keep_best_entries(entries, count, texts);
	}
	r = copy_texts(entries, count, texts, &n);
	if (r < 0)
		return r;
	r = fill_table(&n, entries, count);
	if (r < 0)
		return r;
	*ret_names = n;
	n = (struct name_table){ 0 };
	return 0;
}

void name_table_done(struct name_table *n)
{
	free(n->keys);
	free(n->blob);
	*n = (struct name_table){ 0 };
}

/*
 * Returns the index of the last key that is not above `key`. The caller ensures keys[0] <= key. No
 * branch depends on the data.
 */
static size_t find_last_not_above(const uint32_t *keys, size_t count, uint32_t key)
{
	const uint32_t *base = keys;

	while (count > 1) {
		size_t half = count / 2;

		base += base[half] <= key ? half : 0;
		count -= half;
	}
	return (size_t)(base - keys);
}

ptrdiff_t name_table_after(const struct name_table *n, uint32_t key)
{
	size_t i;

	if (n->count == 0)
		return -1;
	i = n->keys[0] > key ? 0 : find_last_not_above(n->keys, n->count, key) + 1;
	return i < n->count ? (ptrdiff_t)i : -1;
}

ptrdiff_t name_table_find(const struct name_table *n, uint32_t key)
{
	size_t i;

	if (n->count == 0 || n->keys[0] > key)
		return -1;
	i = find_last_not_above(n->keys, n->count, key);
	for (size_t back = 0; back <= NAME_TABLE_NESTED_MAX && back <= i; back++)
		if (key - n->keys[i - back] < n->sizes[i - back])
			return (ptrdiff_t)(i - back);
	return -1;
}

size_t name_table_bytes(const struct name_table *n)
{
	return n->blob_bytes + 3 * n->count * sizeof(*n->keys);
}
