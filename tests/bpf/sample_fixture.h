/* SPDX-License-Identifier: BSD-2-Clause */
/* sample_fixture.h: a watched group with a burning process, and the sampler's records of it. */
#ifndef TROCAR_TESTS_BPF_SAMPLE_FIXTURE_H
#define TROCAR_TESTS_BPF_SAMPLE_FIXTURE_H

#include <bpf/bpf.h>

#include "harness.h"

#define HZ	997
#define SLOT	5
#define WAIT_MS 30000 /* of a busy machine, for records that come at once on any other */

/* A group with a burning process in it, watched. */
struct fixture {
	struct harness *h;
	char dir[4096];
	uint64_t id;
	pid_t pid;
};

/* A harness with that group in `state`; release with sample_end. */
static inline struct fixture sample_begin(const struct harness_options *options, uint32_t state,
					  uint32_t flags)
{
	struct fixture f = { .h = harness_new(options) };

	f.id = harness_group(f.h, "burn", f.dir);
	f.pid = harness_spawn("t-burn", "burn", f.dir);
	harness_watch(f.h, f.id, SLOT, state, flags);
	return f;
}

/* Ends the process and the harness. */
static inline void sample_end(struct fixture *f)
{
	harness_kill(f->pid);
	harness_free(f->h);
}

/* No tick comes any more. */
static inline void sample_stop(struct harness *h)
{
	for (int i = 0; i < HARNESS_CPUS; i++) {
		bpf_link__destroy(h->ticks[i]);
		h->ticks[i] = NULL;
	}
}

/* Waits until more than `count` samples were attempted, however little the group runs. */
static inline void sample_await(struct harness *h, uint64_t count)
{
	for (int i = 0; i < WAIT_MS / 10 && harness_counters(h, SLOT).attempted <= count; i++)
		harness_sleep_ms(10);
	assert_true(harness_counters(h, SLOT).attempted > count);
}

/*
 * Samples for `ms`, and on until `more` samples were attempted; stops, drains. The slot's account
 * must be even.
 */
static inline struct slot_counters sample_for(struct harness *h, unsigned int ms, uint64_t more)
{
	uint64_t count = harness_counters(h, SLOT).attempted;
	struct slot_counters c;

	harness_tick(h, HZ);
	harness_sleep_ms(ms);
	if (more)
		sample_await(h, count + more - 1);
	sample_stop(h);
	harness_drain(h);
	c = harness_counters(h, SLOT);
	assert_int_equal(c.attempted, c.emitted + harness_lost(&c));
	return c;
}

/* The i-th drained record. */
static inline const struct sample *sample_at(const struct harness *h, size_t i)
{
	return h->samples.records[i];
}

/* The record has the length of its frames. */
static inline size_t sample_bytes(const struct sample *s)
{
	size_t user = s->flags & SAMPLE_BUILD_ID ? sizeof(struct frame_build_id) : 8;

	if (s->flags & SAMPLE_ADDRESSES)
		user += 8;
	return sizeof(*s) + 8 * (size_t)s->kernel_frames + user * s->user_frames;
}

#endif
