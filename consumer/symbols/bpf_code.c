/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/symbols/bpf_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/kernel/iterator.h"
#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

void bpf_code_done(struct bpf_code *c)
{
	free(c->items);
	*c = (struct bpf_code){ 0 };
}

static int push_record(struct bpf_code *c, const struct bpf_code_record *record)
{
	if (record->end <= record->start)
		return -EBADMSG;
	if (c->count == BPF_CODE_MAX)
		return -EFBIG;
	if (array_reserve(&c->items, &c->space, c->count + 1, sizeof(*c->items)) < 0)
		return -ENOMEM;
	c->items[c->count++] = *record;
	return 0;
}

static ssize_t take_records(void *context, const uint8_t *data, size_t bytes)
{
	struct bpf_code_record record;
	size_t at = 0;

	for (; bytes - at >= sizeof(record); at += sizeof(record)) {
		int r;

		memcpy(&record, data + at, sizeof(record));
		r = push_record(context, &record);
		if (r < 0)
			return r;
	}
	return (ssize_t)at;
}

static int compare_starts(const void *a, const void *b)
{
	const struct bpf_code_record *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Converts a time of CLOCK_BOOTTIME to CLOCK_MONOTONIC, which lags behind by all suspends. */
static uint64_t mono_of(uint64_t boot_ns, uint64_t suspended_ns)
{
	return boot_ns - MIN(boot_ns, suspended_ns);
}

int bpf_code_read(const char *path, struct bpf_code *ret_code)
{
	_cleanup_(bpf_code_done) struct bpf_code c = { 0 };
	uint64_t mono = clock_mono_ns(), suspended = clock_boot_ns() - mono;
	int r;

	r = iterator_read(path, take_records, &c);
	if (r < 0)
		return r;
	for (size_t i = 0; i < c.count; i++)
		c.items[i].load_ns = mono_of(c.items[i].load_ns, suspended);
	array_sort(c.items, c.count, sizeof(*c.items), compare_starts);
	*ret_code = c;
	c = (struct bpf_code){ 0 };
	return 0;
}

const struct bpf_code_record *bpf_code_find(const struct bpf_code *c, uint64_t address)
{
	size_t after = LOWER_BOUND(i, 0, c->count, c->items[i].start <= address);

	return after > 0 && address < c->items[after - 1].end ? &c->items[after - 1] : NULL;
}
