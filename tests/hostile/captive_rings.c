/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rings, read as libbpf does it. The captive lies about its position in them, so it keeps its
 * own: it reads whole records, for any words written to the kernel side.
 */
#include "captive.h"

#include <linux/bpf.h>
#include <string.h>
#include <sys/mman.h>

#include "shared/tools/macro.h"

#define PAGE	     4096u
#define RECORD_BYTES (1u << 16)

static void take_sample(struct captive *c, const uint8_t *record, size_t n)
{
	captive_look_at_sample(c, record, n);
}

static void take_event(struct captive *c, const uint8_t *record, size_t n)
{
	struct event event;

	if (n < sizeof(event))
		return;
	memcpy(&event, record, sizeof(event));
	captive_look_at_process(c, "an event", event.tgid);
}

static void take_error(struct captive *c, const uint8_t *record, size_t n)
{
	struct error_record error;

	if (n < sizeof(error))
		return;
	memcpy(&error, record, sizeof(error));
	captive_look_at_process(c, "an error", error.tgid);
}

static const struct ring_kind {
	const char *name;
	void (*take)(struct captive *c, const uint8_t *record, size_t n);
} rings[] = {
	{ "samples", take_sample },
	{ "events", take_event },
	{ "errors", take_error },
};

static uint64_t producer(const struct captive_map *m)
{
	return __atomic_load_n((const uint64_t *)m->data, __ATOMIC_ACQUIRE);
}

/*
 * Was the record at `position` overwritten in the meantime? The kernel side does, if we lie for it
 * to.
 */
static bool is_lost(const struct captive_map *m, uint64_t position)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return producer(m) - position > m->entries;
}

/* The record at the position, copied. Its bytes with its head; 0: there is none yet. */
static size_t next(struct captive *c, struct captive_map *m, const struct ring_kind *kind)
{
	static uint8_t record[RECORD_BYTES];
	const uint8_t *at = m->data + PAGE + (m->position & (m->entries - 1));
	uint32_t head = __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);
	uint32_t bytes = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);

	if (head & BPF_RINGBUF_BUSY_BIT)
		return 0;
	memcpy(record, at + BPF_RINGBUF_HDR_SZ, MIN(bytes, sizeof(record)));
	if (is_lost(m, m->position))
		return 0;
	if (!(head & BPF_RINGBUF_DISCARD_BIT)) {
		captive_look(c, m->name, record, MIN(bytes, sizeof(record)));
		kind->take(c, record, MIN(bytes, sizeof(record)));
	}
	return (BPF_RINGBUF_HDR_SZ + bytes + 7) / 8 * 8;
}

static void drain(struct captive *c, struct captive_map *m, const struct ring_kind *kind)
{
	size_t bytes;

	if (!m->data || !m->memory)
		return;
	/* Before the first lie: at most of runs this is where a record begins. */
	if (is_lost(m, m->position))
		m->position = producer(m);
	while (m->position < producer(m) && (bytes = next(c, m, kind)) > 0)
		m->position += bytes;
	__atomic_store_n((uint64_t *)m->memory, m->position, __ATOMIC_RELEASE);
	/* All that was ever in it may be looked at, read or not. */
	if (captive_random(c, 2000) == 0)
		captive_look(c, m->name, m->data + PAGE, m->entries);
}

void captive_drain(struct captive *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(rings); i++)
		drain(c, captive_map(c, rings[i].name), &rings[i]);
	c->reads++;
}
