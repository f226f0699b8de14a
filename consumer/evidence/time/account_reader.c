/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/time/account_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer/kernel/iterator.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/signals/slot_nest.h"
#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

int account_reader_open(struct account_reader *r, const struct pinned_maps *pins, uint32_t slot,
			uint32_t only_tgid)
{
	*r = (struct account_reader){ .pins = pins, .slot = slot, .only_tgid = only_tgid };
	r->fd = open(pins->account_threads_path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return r->fd < 0 ? -errno : 0;
}

bool account_reader_wants(const struct account_reader *r, const struct time_account *a)
{
	return (!r->only_tgid || a->tgid == r->only_tgid) &&
	       slot_nest_has(r->pins, a->slot, r->slot);
}

static int keep_record(struct account_reader *r, const struct account_record *record)
{
	if (array_reserve(&r->items, &r->space, r->count + 1, sizeof(*r->items)) < 0)
		return -ENOMEM;
	r->items[r->count++] = *record;
	return 0;
}

static int take_record(struct account_reader *r, const struct account_record *record)
{
	/*
	 * A record without a tid only ends a read: the iterator has passed many threads of other
	 * cgroups.
	 */
	if (!record->head.tid || !account_reader_wants(r, &record->head.account))
		return 0;
	if (!(record->head.account.flags & ACCOUNT_LOST))
		return keep_record(r, record);
	r->lost++;
	r->no_memory += !!(record->head.account.flags & ACCOUNT_SHORT);
	return 0;
}

/* Takes the complete records of the buffer, and keeps the incomplete one. */
static int take_records(struct account_reader *r)
{
	struct account_record record;
	size_t at;
	int e;

	for (at = 0; r->have - at >= sizeof(record); at += sizeof(record)) {
		memcpy(&record, r->buffer + at, sizeof(record));
		e = take_record(r, &record);
		if (e < 0)
			return e;
	}
	r->have -= at;
	memmove(r->buffer, r->buffer + at, r->have);
	return 0;
}

static int compare_tids(const void *a, const void *b)
{
	const struct account_record *x = a, *y = b;

	return x->head.tid < y->head.tid ? -1 : x->head.tid > y->head.tid;
}

/* The iterator goes by tid, so only reused tids need sorting. */
static void sort_records(struct account_reader *r)
{
	for (size_t i = 1; i < r->count; i++) {
		if (compare_tids(&r->items[i - 1], &r->items[i]) <= 0)
			continue;
		qsort(r->items, r->count, sizeof(*r->items), compare_tids);
		return;
	}
}

/* Reads once. Returns 1, 0 at the end, or -errno. */
static int read_once(struct account_reader *r)
{
	ssize_t n = read(r->fd, r->buffer + r->have, ACCOUNTS_READ_BYTES);

	if (n < 0 && (errno == EINTR || errno == EAGAIN) && ++r->busy_retries < RECORDS_AGAIN_MAX)
		return 1;
	if (n < 0)
		return -errno;
	r->busy_retries = 0;
	r->have += (size_t)n;
	if (n > 0)
		return take_records(r) < 0 ? -ENOMEM : 1;
	if (r->have)
		return -EBADMSG;
	sort_records(r);
	close(TAKE_FD(r->fd));
	return 0;
}

int account_reader_step(struct account_reader *r, uint64_t until_ns)
{
	int more;

	if (r->fd < 0)
		return 0;
	do
		more = read_once(r);
	while (more > 0 && clock_mono_ns() < until_ns);
	return more;
}

const struct account_record *account_reader_find(const struct account_reader *r, uint32_t tid,
						 uint64_t first_ns)
{
	const struct account_record wanted = { .head.tid = tid };
	const struct account_record *found =
		array_find(&wanted, r->items, r->count, sizeof(wanted), compare_tids);

	return found && found->head.account.first_ns == first_ns ? found : NULL;
}

void account_reader_done(struct account_reader *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
	free(TAKE_PTR(r->items));
	r->count = r->space = 0;
}
