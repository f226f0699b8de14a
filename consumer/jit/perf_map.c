/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/jit/perf_map.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define HEX_DIGITS_MAX 16

/*
 * A line of the file. Its position in the list is its age: the last line of the file comes first.
 */
struct entry {
	uint64_t start, size;
	uint32_t text;
};

/* The function that counts from `start` to the start of the next piece. */
struct piece {
	uint64_t start;
	uint32_t entry; /* NO_ENTRY: none */
	bool reused;	/* another function was there when the samples began, or has been since */
};

#define NO_ENTRY UINT32_MAX

struct jit_map {
	struct entry *entries; /* owned */
	size_t count, space;
	struct piece *pieces; /* owned; sorted by start */
	size_t piece_count;
	char *names; /* owned */
	size_t names_bytes, names_space;
	size_t fresh; /* entries that may be younger than the samples: the first ones of the list */
	bool cut;     /* lines before the lines that were read are missing */
};

static void perf_map_freep(struct jit_map **map)
{
	perf_map_free(*map);
}

void perf_map_free(struct jit_map *map)
{
	if (!map)
		return;
	free(map->entries);
	free(map->pieces);
	free(map->names);
	free(map);
}

/* Reads a hexadecimal number and the blank after it; false if there is something else. */
static bool take_hex(const char **at, const char *end, uint64_t *ret_number)
{
	uint64_t number = 0;
	const char *i = *at;

	if (end - i > 2 && i[0] == '0' && (i[1] == 'x' || i[1] == 'X'))
		i += 2;
	for (size_t n = 0; i < end && *i != ' '; i++, n++) {
		unsigned int digit;

		if (*i >= '0' && *i <= '9')
			digit = (unsigned int)(*i - '0');
		else if ((*i | 32) >= 'a' && (*i | 32) <= 'f')
			digit = (unsigned int)((*i | 32) - 'a' + 10);
		else
			return false;
		if (n == HEX_DIGITS_MAX)
			return false;
		number = number << 4 | digit;
	}
	if (i == *at || i == end)
		return false;
	*at = i + 1;
	*ret_number = number;
	return true;
}

static int push_name(struct jit_map *map, const char *name, size_t bytes)
{
	if (map->names_bytes + bytes + 1 > map->names_space) {
		size_t space = MAX(map->names_space * 2, (size_t)65536);
		char *more = realloc(map->names, space);

		if (!more)
			return -ENOMEM;
		map->names = more;
		map->names_space = space;
	}
	memcpy(map->names + map->names_bytes, name, bytes);
	map->names[map->names_bytes + bytes] = '\0';
	map->names_bytes += bytes + 1;
	return 0;
}

static int push_entry(struct jit_map *map, struct entry entry)
{
	if (array_reserve(&map->entries, &map->space, map->count + 1, sizeof(*map->entries)) < 0)
		return -ENOMEM;
	map->entries[map->count++] = entry;
	return 0;
}

/* Adds the entry of one line, given without its end; skips a line that is malformed. */
static int take_line(struct jit_map *map, const char *line, size_t bytes)
{
	const char *at = line, *end = line + bytes;
	struct entry entry = { .text = (uint32_t)map->names_bytes };
	size_t name;
	int r;

	if (!take_hex(&at, end, &entry.start) || !take_hex(&at, end, &entry.size))
		return 0;
	name = strnlen(at, MIN((size_t)(end - at), (size_t)PERF_MAP_NAME_BYTES - 1));
	if (entry.size == 0 || entry.start > UINT64_MAX - entry.size || name == 0)
		return 0;
	r = push_name(map, at, name);
	return r < 0 ? r : push_entry(map, entry);
}

/* Index of an entry with its start, for sorting. */
struct by_start {
	uint64_t start;
	uint32_t entry;
};

static int compare_starts(const void *a, const void *b)
{
	const struct by_start *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/*
 * A sweep over the addresses. `heap` has the entries that begin at or before the current address,
 * the newest at its root. An entry that has ended stays in it until it reaches the root.
 */
struct sweep {
	struct jit_map *map;
	struct by_start *sorted; /* owned; entries by start */
	uint32_t *heap;		 /* owned */
	size_t heap_count, next;
};

static void sweep_done(struct sweep *s)
{
	free(s->sorted);
	free(s->heap);
}

static void push_heap(struct sweep *s, uint32_t entry)
{
	size_t i = s->heap_count++;

	for (; i > 0 && s->heap[(i - 1) / 2] > entry; i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = entry;
}

static void pop_heap(struct sweep *s)
{
	uint32_t entry = s->heap[--s->heap_count];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < s->heap_count) {
		child += child + 1 < s->heap_count && s->heap[child + 1] < s->heap[child];
		if (s->heap[child] >= entry)
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	s->heap[i] = entry;
}

static uint64_t end_of(const struct sweep *s, uint32_t entry)
{
	return s->map->entries[entry].start + s->map->entries[entry].size;
}

/* Adds a piece, unless it continues the previous one. */
static void push_piece(struct jit_map *map, struct piece piece)
{
	const struct piece *last = map->piece_count > 0 ? &map->pieces[map->piece_count - 1] : NULL;

	if (last && last->entry == piece.entry && last->reused == piece.reused)
		return;
	map->pieces[map->piece_count++] = piece;
}

static void pop_ended(struct sweep *s, uint64_t address)
{
	while (s->heap_count > 0 && end_of(s, s->heap[0]) <= address)
		pop_heap(s);
}

/*
 * Whether a sample at `address` may belong to another function than the newest one there: that one
 * may be younger than the sample, and the next one is not an old entry of the same name. *ret_until
 * is lowered to where this may change.
 */
static bool is_reused(struct sweep *s, uint64_t address, uint64_t *ret_until)
{
	const struct jit_map *map = s->map;
	uint32_t newest = s->heap[0], second;
	bool reused = false;

	if (newest >= map->fresh)
		return false;
	pop_heap(s);
	pop_ended(s, address);
	if (s->heap_count > 0) {
		second = s->heap[0];
		reused = second < map->fresh || strcmp(map->names + map->entries[newest].text,
						       map->names + map->entries[second].text) != 0;
		*ret_until = MIN(*ret_until, end_of(s, second));
	}
	push_heap(s, newest);
	return reused;
}

/*
 * Writes the piece at `address` and returns where the next one begins: where an entry begins, or
 * where one of the two newest ends. Each entry begins once and ends once, so there are at most two
 * pieces for each.
 */
static uint64_t sweep_piece(struct sweep *s, uint64_t address)
{
	struct piece piece = { .start = address, .entry = NO_ENTRY };
	uint64_t next;

	while (s->next < s->map->count && s->sorted[s->next].start == address)
		push_heap(s, s->sorted[s->next++].entry);
	pop_ended(s, address);
	next = s->next < s->map->count ? s->sorted[s->next].start : UINT64_MAX;
	if (s->heap_count > 0) {
		piece.entry = s->heap[0];
		next = MIN(next, end_of(s, piece.entry));
		piece.reused = is_reused(s, address, &next);
	}
	push_piece(s->map, piece);
	return next;
}

/*
 * Cuts the entries into pieces that do not overlap, each with the newest entry there. Runtimes
 * reuse the addresses of old code and never clean the file, so any number of entries may cover one
 * address.
 */
static int cut_pieces(struct jit_map *map)
{
	_cleanup_(sweep_done) struct sweep s = { .map = map };
	struct piece *fitting;

	if (map->count == 0)
		return 0;
	s.sorted = calloc(map->count, sizeof(*s.sorted));
	s.heap = calloc(map->count, sizeof(*s.heap));
	map->pieces = calloc(2 * map->count, sizeof(*map->pieces));
	if (!s.sorted || !s.heap || !map->pieces)
		return -ENOMEM;
	for (size_t i = 0; i < map->count; i++)
		s.sorted[i] =
			(struct by_start){ .start = map->entries[i].start, .entry = (uint32_t)i };
	qsort(s.sorted, map->count, sizeof(*s.sorted), compare_starts);
	for (uint64_t at = s.sorted[0].start; s.heap_count > 0 || s.next < map->count;)
		at = sweep_piece(&s, at);
	fitting = realloc(map->pieces, map->piece_count * sizeof(*fitting));
	if (fitting)
		map->pieces = fitting;
	return 0;
}

int perf_map_parse(const char *text, size_t bytes, size_t old_bytes, struct jit_map **ret_map)
{
	_cleanup_(perf_map_freep) struct jit_map *map = calloc(1, sizeof(*map));
	int r;

	if (!map)
		return -ENOMEM;
	while (bytes > 0 && map->count < PERF_MAP_SYMBOLS_MAX) {
		const char *before = memrchr(text, '\n', bytes);
		size_t start = before ? (size_t)(before - text) + 1 : 0;

		r = take_line(map, text + start, bytes - start);
		if (r < 0)
			return r;
		if (bytes > old_bytes)
			map->fresh = map->count;
		bytes = before ? start - 1 : 0;
	}
	map->cut = bytes > 0;
	r = cut_pieces(map);
	if (r < 0)
		return r;
	*ret_map = TAKE_PTR(map);
	return 0;
}

enum reason perf_map_find(const struct jit_map *map, uint64_t address, const char **ret_fn,
			  uint64_t *ret_start)
{
	size_t after = LOWER_BOUND(i, 0, map->piece_count, map->pieces[i].start <= address);
	const struct piece *found = after > 0 ? &map->pieces[after - 1] : NULL;

	if (!found || found->entry == NO_ENTRY)
		return map->cut ? REASON_PERF_MAP_CUT : REASON_NO_SYMBOL;
	if (found->reused)
		return REASON_CODE_REUSED;
	*ret_start = map->entries[found->entry].start;
	*ret_fn = map->names + map->entries[found->entry].text;
	return REASON_NONE;
}

void perf_map_set_cut(struct jit_map *map)
{
	map->cut = true;
}

size_t perf_map_bytes(const struct jit_map *map)
{
	return sizeof(*map) + map->space * sizeof(*map->entries) +
	       map->piece_count * sizeof(*map->pieces) + map->names_space;
}
