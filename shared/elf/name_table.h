/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * name_table.h: the compact table of every name source: sorted 32-bit keys (file offsets, or the
 * low half of kernel addresses), sizes, and one blob of names. It takes 12 bytes per symbol in
 * addition to its name. Keys are contiguous, because a lookup is a binary search over keys only.
 * Any thread may use a table: it never changes once built.
 */
#ifndef TROCAR_SHARED_ELF_NAME_TABLE_H
#define TROCAR_SHARED_ELF_NAME_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define NAME_TABLE_COUNT_MAX  4000000 /* symbols of one table */
#define NAME_TABLE_TEXT_BYTES 4096    /* NUL included; a longer name is kept cut */
#define NAME_TABLE_NESTED_MAX 16      /* symbols to go back in the search for an enclosing one */

/*
 * One candidate. Among candidates with equal keys the table keeps the one with the highest rank,
 * then the shorter name, then the smaller name.
 */
struct name_table_entry {
	uint32_t key;
	uint32_t size; /* extent; with `open` the largest possible one */
	uint32_t text; /* offset of its name in `strings` */
	uint16_t rank;
	uint16_t open; /* 1: size not known: it ends where the next symbol starts */
};

struct name_table {
	uint32_t *keys; /* owned: one allocation for keys, sizes and texts */
	uint32_t *sizes;
	uint32_t *texts; /* offsets in blob */
	char *blob;	 /* owned */
	size_t blob_bytes;
	size_t count;
};

/*
 * Ranks the best-known names first: global before local, known size before none, fewer leading
 * underscores ("read" before "__read").
 */
uint16_t name_table_rank(const char *text, int global, int function, int sized);

/* Where the names of the entries are. */
struct name_table_texts {
	const char *strings; /* with a NUL at bytes - 1 */
	size_t bytes;
	unsigned int parts; /* consecutive strings per name: 2 for the kernel, name and module */
	size_t kept_max;    /* bytes of names that the table may keep, at most UINT32_MAX */
};

/*
 * Builds the table. Sorts `entries` in place; every `text` must point into the strings. Leaves out
 * an open entry inside a sized one: it is a label. Returns 0, -ENOMEM, -EFBIG (NAME_TABLE_COUNT_MAX
 * or kept_max), -EINVAL (a text beyond the strings). Release with name_table_done.
 */
int name_table_build(struct name_table_entry *entries, size_t count,
		     const struct name_table_texts *texts, struct name_table *ret_names);
void name_table_done(struct name_table *n);

/* Returns the index of the symbol that contains `key`, or -1. */
ptrdiff_t name_table_find(const struct name_table *n, uint32_t key);

/* Returns the index of the first symbol that begins after `key`, or -1. */
ptrdiff_t name_table_after(const struct name_table *n, uint32_t key);

static inline const char *name_table_text(const struct name_table *n, size_t i)
{
	return n->blob + n->texts[i];
}

/* Returns the bytes of heap that the table holds. */
size_t name_table_bytes(const struct name_table *n);

#endif
