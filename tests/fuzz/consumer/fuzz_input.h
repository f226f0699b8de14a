/* SPDX-License-Identifier: BSD-2-Clause */
/* fuzz_input.h: makes tables of the kernel side of the bytes of a fuzzer, one element after the
 * other. */
#ifndef TROCAR_TESTS_FUZZ_CONSUMER_FUZZ_INPUT_H
#define TROCAR_TESTS_FUZZ_CONSUMER_FUZZ_INPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/signals/neighbour_rows.h"
#include "shared/tools/macro.h"

#define FUZZ_OWN_SLOT 1

struct fuzz_input {
	const uint8_t *data;
	size_t bytes;
};

/* Fills an object with the next bytes, and with zeros behind the last. */
static inline void fuzz_fill(struct fuzz_input *in, void *to, size_t bytes)
{
	size_t n = MIN(bytes, in->bytes);

	memset(to, 0, bytes);
	if (n)
		memcpy(to, in->data, n);
	in->data += n;
	in->bytes -= n;
}

/* Returns a number below `end`. */
static inline uint32_t fuzz_number(struct fuzz_input *in, uint32_t end)
{
	uint8_t byte;

	fuzz_fill(in, &byte, 1);
	return byte % end;
}

/* Returns so many elements, to be freed. */
static inline void *fuzz_table(struct fuzz_input *in, uint32_t count, size_t size)
{
	void *table = malloc(MAX(count * size, (size_t)1));

	if (!table)
		abort();
	fuzz_fill(in, table, count * size);
	return table;
}

static inline bool fuzz_is_own(const void *context, uint32_t slot)
{
	(void)context;
	return slot == FUZZ_OWN_SLOT;
}

/* Three of four cgroups are in a directory of one of three users. */
static inline size_t fuzz_group(void *context, uint64_t cgroup_id)
{
	(void)context;
	return cgroup_id % 4;
}

/* Every second row has a path. */
static inline void fuzz_name(void *context, struct neighbour_row *row)
{
	(void)context;
	row->path = row->cgroup_id & 1 ? strdup("/a") : NULL;
}

static const struct neighbour_names fuzz_names = { .group = fuzz_group, .name = fuzz_name };

static inline void fuzz_check(bool holds)
{
	if (!holds)
		abort();
}

#endif
