/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/disks/session_block.h"

#include "consumer/evidence/cpu/session_neighbours.h"
#include "consumer/facts/disk_text.h"
#include "consumer/naming/frame_json.h"
#include "consumer/signals/time_histogram.h"
#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

/* Members that the lines of a session share. */
struct block_lines {
	const struct event_lines *lines;
	const struct event_subject *subject;
	const struct facts_disks *disks;
};

static void begin_line(const struct block_lines *b, const char *type, struct jsonw *w)
{
	event_line_begin(b->lines, w, type, b->subject);
	jsonw_string(w, "signal", rules_signal_name(SIGNAL_BLOCK));
}

static void write_sums(const struct block_times *t, struct jsonw *w)
{
	jsonw_u64(w, "requests", t->requests);
	jsonw_u64(w, "bytes", t->bytes);
	jsonw_u64(w, "queue_ns", t->queue_ns);
	jsonw_u64(w, "service_ns", t->service_ns);
	jsonw_u64_nonzero(w, "longest_ns", t->longest_ns);
	jsonw_u64(w, "errors", t->errors);
	if (t->errors)
		jsonw_u64(w, "error_ns", t->error_ns);
	jsonw_u64(w, "merges", t->merges);
}

static void write_part(const char *key, const uint64_t counts[QUEUE_BUCKETS], struct jsonw *w)
{
	jsonw_object(w, key);
	time_histogram_write_percentiles(counts, QUEUE_BUCKETS, w);
	jsonw_object_end(w);
}

static void write_open(const struct block_disk *d, struct jsonw *w)
{
	jsonw_u64(w, "open", d->open);
	if (!d->open)
		return;
	jsonw_u64(w, "open_at_disk", d->open_issued);
	jsonw_u64(w, "open_ns", d->open_ns);
}

/* Writes the sums of all cgroups together, including this one. */
static void write_everybody(const struct block_disk *d, struct jsonw *w)
{
	jsonw_object(w, "everybody");
	jsonw_u64(w, "requests", d->everybody_requests);
	jsonw_u64(w, "bytes", d->everybody_bytes);
	jsonw_u64(w, "service_ns", d->everybody_service_ns);
	jsonw_object_end(w);
}

static void put_disk(const struct block_lines *b, const struct block_disk *d)
{
	struct jsonw w;

	begin_line(b, "disk", &w);
	disk_text_write_name(b->disks, d->device, &w);
	disk_text_write_number(d->device, &w);
	jsonw_string(&w, "op", block_requests_op_name(d->op));
	write_sums(&d->all, &w);
	write_part("queue", d->all.queue, &w);
	write_part("service", d->all.service, &w);
	if (d->written_back) {
		jsonw_object(&w, "written_back");
		jsonw_u64(&w, "requests", d->written_back);
		jsonw_u64(&w, "bytes", d->written_back_bytes);
		jsonw_object_end(&w);
	}
	write_open(d, &w);
	write_everybody(d, &w);
	disk_text_write(b->disks, d->device >> 20, d->device & 0xfffff, &w);
	event_line_end(b->lines, &w);
}

static void put_rest(const struct block_lines *b, const struct block_requests *all)
{
	struct jsonw w;

	begin_line(b, "disk", &w);
	jsonw_u64(&w, "others", all->rest);
	write_sums(&all->rest_times, &w);
	event_line_end(b->lines, &w);
}

/* Writes one histogram; `size` is a class of BLOCK_SIZES, or BLOCK_SIZES itself for all classes. */
static void put_histogram(const struct block_lines *b, const struct block_disk *d,
			  unsigned int size, bool service)
{
	const struct block_times *t = size < BLOCK_SIZES ? &d->sizes[size] : &d->all;
	uint64_t bytes = block_requests_size_bytes(size);
	struct jsonw w;

	begin_line(b, "histogram", &w);
	jsonw_object(&w, "key");
	jsonw_string(&w, "of", "disk");
	disk_text_write_name(b->disks, d->device, &w);
	jsonw_string(&w, "op", block_requests_op_name(d->op));
	jsonw_string(&w, "part", service ? "service" : "queue");
	if (size < BLOCK_SIZES && bytes)
		jsonw_u64(&w, "size_bytes", bytes);
	else if (size < BLOCK_SIZES)
		jsonw_null(&w, "size_bytes");
	jsonw_object_end(&w);
	time_histogram_write(service ? t->service : t->queue, service ? t->service_ns : t->queue_ns,
			     &w);
	event_line_end(b->lines, &w);
}

/* Writes the histograms of all requests, and the histograms by size if there are several sizes. */
static void put_histograms(const struct block_lines *b, const struct block_disk *d)
{
	unsigned int sizes = 0;

	if (d->all.requests == d->all.unseen)
		return;
	for (unsigned int i = 0; i < BLOCK_SIZES; i++)
		sizes += d->sizes[i].requests > 0;
	for (unsigned int i = 0; sizes > 1 && i < BLOCK_SIZES; i++) {
		if (!d->sizes[i].requests)
			continue;
		put_histogram(b, d, i, false);
		put_histogram(b, d, i, true);
	}
	put_histogram(b, d, BLOCK_SIZES, false);
	put_histogram(b, d, BLOCK_SIZES, true);
}

static void write_used(const struct block_neighbour *n, struct jsonw *w)
{
	jsonw_u64(w, "requests", n->requests);
	jsonw_u64(w, "bytes", n->bytes);
	jsonw_u64(w, "service_ms", n->service_ns / NSEC_PER_MSEC);
}

static void put_neighbour(const struct block_lines *b, const struct block_neighbour *n)
{
	uint64_t all_ns = MAX(n->disk_service_ns, (uint64_t)1);
	struct jsonw w;

	begin_line(b, "neighbour", &w);
	session_neighbours_write_row(&n->row, NULL, &w);
	disk_text_write_name(b->disks, n->device, &w);
	write_used(n, &w);
	jsonw_milli(&w, "share",
		    (int64_t)((double)MIN(n->service_ns, all_ns) * 1000 / (double)all_ns));
	event_line_end(b->lines, &w);
}

static void put_more(const struct block_lines *b, const struct block_requests *all)
{
	struct jsonw w;

	begin_line(b, "neighbour", &w);
	jsonw_u64(&w, "others", all->more_neighbours);
	write_used(&all->more, &w);
	event_line_end(b->lines, &w);
}

void session_block_put(const struct session_result *s, const struct event_lines *lines,
		       const struct event_subject *subject)
{
	const struct block_requests *all = block_requests_of(s->signals);
	struct block_lines b = { .lines = lines, .subject = subject, .disks = s->disks };

	if (!all)
		return;
	for (size_t i = 0; i < all->count; i++) {
		put_disk(&b, &all->items[i]);
		put_histograms(&b, &all->items[i]);
	}
	if (all->rest)
		put_rest(&b, all);
	for (size_t i = 0; i < all->n_neighbours; i++)
		put_neighbour(&b, &all->neighbours[i]);
	if (all->more_neighbours)
		put_more(&b, all);
}
