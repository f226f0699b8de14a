/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/signals/counter_keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/array.h"
#include "shared/tools/macro.h"

static int compare_keys(const void *a, const void *b, void *bytes)
{
	return memcmp(*(const void *const *)a, *(const void *const *)b, *(const size_t *)bytes);
}

int counter_keys_sort(const void *keys, size_t count, size_t bytes, struct counter_keys *ret_keys)
{
	struct counter_keys k = { .first = keys, .count = count, .bytes = bytes };

	k.items = calloc(MAX(count, (size_t)1), sizeof(*k.items));
	if (!k.items)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		k.items[i] = k.first + i * bytes;
	qsort_r(k.items, count, sizeof(*k.items), compare_keys, &k.bytes);
	*ret_keys = k;
	return 0;
}

void counter_keys_done(struct counter_keys *k)
{
	free(k->items);
	*k = (struct counter_keys){};
}

size_t counter_keys_find(const struct counter_keys *k, const void *key)
{
	size_t at = LOWER_BOUND(i, 0, k->count, memcmp(k->items[i], key, k->bytes) < 0);

	if (at == k->count || memcmp(k->items[at], key, k->bytes) != 0)
		return k->count;
	return (size_t)((const char *)k->items[at] - k->first) / k->bytes;
}

const void *counter_keys_value(const struct counter_keys *k, const void *key, const void *values,
			       size_t bytes, const void *none)
{
	size_t at = counter_keys_find(k, key);

	return at < k->count ? (const char *)values + at * bytes : none;
}
