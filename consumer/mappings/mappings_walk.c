/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/mappings/mappings_walk.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer/kernel/iterator.h"
#include "consumer/kernel/map_batch.h"
#include "consumer/mappings/mapping_records.h"
#include "shared/tools/clock.h"

void mappings_walk_init(struct mappings_walk *w, const struct pinned_maps *pins,
			struct symbols *symbols)
{
	*w = (struct mappings_walk){ .pins = pins, .symbols = symbols, .fd = -1 };
}

static void close_walk(struct mappings_walk *w)
{
	if (w->open)
		close(w->fd);
	w->open = false;
	w->filled = 0;
	w->last = NULL;
}

void mappings_walk_done(struct mappings_walk *w)
{
	close_walk(w);
	for (size_t i = 0; i < w->count; i++)
		mapping_reading_done(&w->entries[i].reading);
	free(w->entries);
	free(w->buffer);
	w->entries = NULL;
	w->buffer = NULL;
	w->count = 0;
}

void mappings_walk_clear(const struct pinned_maps *pins)
{
	map_batch_clear(pins->asked_fd, sizeof(uint32_t));
}

bool mappings_walk_runs(const struct mappings_walk *w)
{
	return w->open || w->ready_count;
}

static int make_room(struct mappings_walk *w)
{
	if (!w->entries)
		w->entries = calloc(ASKED_MAX, sizeof(*w->entries));
	if (!w->buffer)
		w->buffer = malloc(RECORDS_BUFFER_BYTES);
	return w->entries && w->buffer ? 0 : -ENOMEM;
}

int mappings_walk_ask(struct mappings_walk *w, const struct process_key *key)
{
	const struct asked_process asked = {};
	int r;

	if (mappings_walk_runs(w))
		return -EBUSY;
	if (w->count == ASKED_MAX)
		return -E2BIG;
	r = make_room(w);
	if (r < 0)
		return r;
	if (bpf_map_update_elem(w->pins->asked_fd, &key->tgid, &asked, BPF_NOEXIST) < 0)
		return -errno;
	w->entries[w->count++] = (struct walk_entry){
		.reading = { .symbols = w->symbols, .tgid = key->tgid, .start_ns = key->start_ns },
	};
	return 0;
}

static int by_tgid(const void *a, const void *b)
{
	const struct walk_entry *x = a, *y = b;

	return x->reading.tgid < y->reading.tgid ? -1 : x->reading.tgid > y->reading.tgid;
}

static struct walk_entry *find_entry(struct mappings_walk *w, uint32_t tgid)
{
	const struct walk_entry key = { .reading.tgid = tgid };

	return bsearch(&key, w->entries, w->count, sizeof(key), by_tgid);
}

static void end_entry(struct mappings_walk *w, struct walk_entry *entry)
{
	if (!entry || entry->ended)
		return;
	entry->ended = true;
	w->ready[w->ready_count++] = (uint16_t)(entry - w->entries);
}

/* Ends the process of the last records, unless the next walk continues it. */
static void end_last(struct mappings_walk *w)
{
	if (w->last && (w->last->error || !w->last->reading.more_from))
		end_entry(w, w->last);
	w->last = NULL;
}

static int take_record(void *context, const struct mapping_record *record, const char *path)
{
	struct mappings_walk *w = context;
	struct walk_entry *entry = find_entry(w, record->tgid);

	if (entry != w->last)
		end_last(w);
	if (!entry || entry->ended)
		return 0;
	w->last = entry;
	if (!entry->reading.mappings.read_ns)
		entry->reading.mappings.read_ns = w->read_ns;
	if (!entry->error)
		entry->error = mapping_reading_take(&entry->reading, record, path);
	return 0;
}

/*
 * Removes the entries that were given to the caller. The others are incomplete: the next walk
 * continues them.
 */
static void keep_unended(struct mappings_walk *w)
{
	size_t kept = 0;

	w->ready_count = w->ready_at = 0;
	for (size_t i = 0; i < w->count; i++)
		if (!w->entries[i].ended)
			w->entries[kept++] = w->entries[i];
	w->count = kept;
}

/*
 * Returns how the ended walk left a process: 0 if the next walk continues it. Each walk must get
 * further than the previous one.
 */
static int judge_entry(const struct mappings_walk *w, struct walk_entry *entry)
{
	struct mapping_reading *in = &entry->reading;
	const struct asked_process asked = { .from = in->more_from };

	if (!in->more_from)
		return mapping_reading_why_unseen(in);
	if (in->more_from <= entry->from)
		return -EBADMSG;
	entry->from = in->more_from;
	if (entry->walks == MAPPINGS_ROUNDS_MAX)
		in->surplus = true;
	else if (bpf_map_update_elem(w->pins->asked_fd, &in->tgid, &asked, BPF_EXIST) < 0)
		return -errno;
	return 0;
}

/* Ends the walk; `error`: why it failed, for all processes that it has not listed. */
static void end_walk(struct mappings_walk *w, int error)
{
	end_last(w);
	for (size_t i = 0; i < w->count; i++) {
		struct walk_entry *entry = &w->entries[i];

		if (entry->ended)
			continue;
		if (!entry->error)
			entry->error = error ? error : judge_entry(w, entry);
		if (entry->error || entry->reading.surplus)
			end_entry(w, entry);
	}
	close_walk(w);
}

static int open_walk(struct mappings_walk *w)
{
	for (size_t i = 0; i < w->count; i++) {
		w->entries[i].walks++;
		w->entries[i].reading.more_from = 0;
	}
	qsort(w->entries, w->count, sizeof(*w->entries), by_tgid);
	w->walks++;
	w->fd = open(w->pins->vmas_path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (w->fd < 0)
		return -errno;
	w->open = true;
	return 0;
}

/*
 * Reads the records of one read(2). The records of a process are complete, because the buffer holds
 * all that the kernel keeps (iterator.h).
 */
static int read_part(struct mappings_walk *w)
{
	ssize_t n, used;

	w->read_ns = clock_mono_ns();
	n = read(w->fd, w->buffer + w->filled, RECORDS_BUFFER_BYTES - w->filled);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -errno;
	if (n == 0) {
		end_walk(w, w->filled ? -EBADMSG : 0);
		return 0;
	}
	w->filled += (size_t)n;
	used = mapping_records_parse(w->buffer, w->filled, take_record, w);
	if (used < 0)
		return (int)used;
	w->filled -= (size_t)used;
	if (w->filled == RECORDS_BUFFER_BYTES)
		return -EBADMSG;
	memmove(w->buffer, w->buffer + used, w->filled);
	if (w->filled == 0)
		end_last(w);
	return 0;
}

static void give_answer(struct mappings_walk *w, struct mappings_answer *answer)
{
	struct walk_entry *entry = &w->entries[w->ready[w->ready_at++]];
	struct mapping_reading *in = &entry->reading;

	*answer = (struct mappings_answer){
		.key = { .tgid = in->tgid, .start_ns = in->start_ns },
		.r = entry->error,
	};
	bpf_map_delete_elem(w->pins->asked_fd, &in->tgid);
	if (!entry->error && !in->seen)
		answer->r = mapping_reading_why_unseen(in);
	if (answer->r)
		mapping_reading_done(in);
	else
		answer->r = mapping_reading_end(in, &answer->maps);
}

int mappings_walk_next(struct mappings_walk *w, uint64_t until_ns,
		       struct mappings_answer *ret_answer)
{
	int r;

	for (;;) {
		if (w->ready_at < w->ready_count) {
			give_answer(w, ret_answer);
			return 1;
		}
		if (w->ready_count && !w->open) {
			keep_unended(w);
			return 0;
		}
		if (!w->count || clock_mono_ns() >= until_ns)
			return 0;
		r = w->open ? read_part(w) : open_walk(w);
		if (r < 0)
			end_walk(w, r);
	}
}
