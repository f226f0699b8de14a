/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/sampling/wait_stacks.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/sampling/wait_objects.h"
#include "shared/tools/clock.h"

void wait_stacks_init(struct wait_stacks *s, size_t max)
{
	*s = (struct wait_stacks){ 0 };
	idmap_init(&s->by_hash, max);
}

void wait_stacks_done(struct wait_stacks *s)
{
	idmap_done(&s->by_hash);
}

static uint64_t mix_bytes(uint64_t hash, const void *bytes, size_t n)
{
	const unsigned char *at = bytes;
	uint64_t word;

	for (; n >= sizeof(word); n -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 29;
	}
	for (; n; n--)
		hash = (hash ^ *at++) * 0x100000001b3ULL;
	return hash;
}

/* Fills `plain`, which is zeroed, with the members that the stacks of two threads share. */
static void make_plain(const struct stack_sample *h, struct stack_sample *plain)
{
	plain->start_ns = h->start_ns;
	plain->tgid = h->tgid;
	plain->slot = h->slot;
	plain->epoch = h->epoch;
	plain->flags = h->flags;
	plain->kernel_frames = h->kernel_frames;
	plain->user_frames = h->user_frames;
	plain->runtime_frames = h->runtime_frames;
	plain->runtime_end = h->runtime_end;
	plain->user_error = h->user_error;
	plain->stop_reason = h->stop_reason;
	plain->image = h->image;
	plain->rule_id = h->rule_id;
	plain->cgroup_id = h->cgroup_id;
	plain->wait = h->wait;
	memcpy(plain->comm, h->comm, sizeof(plain->comm));
}

static size_t frames_of(const struct stack_sample *h)
{
	return (size_t)h->kernel_frames + h->user_frames;
}

static void hold_modules(const struct wait_stack *stack, int holds)
{
	uint64_t now_ns = clock_mono_ns();

	for (size_t i = 0; i < frames_of(&stack->sample); i++) {
		struct module *m = stack->sample.frames[i].module;

		if (!m || m == &stack_sample_unknown || m == &stack_sample_runtime)
			continue;
		if (holds > 0)
			symbols_hold(m);
		else
			symbols_release(m, now_ns);
	}
}

static size_t bytes_of(const struct stack_sample *sample)
{
	return offsetof(struct wait_stack, sample) + stack_sample_bytes(sample);
}

/* Compares two plain samples. */
static bool is_same(const struct stack_sample *a, const struct stack_sample *b)
{
	return a->start_ns == b->start_ns && a->tgid == b->tgid && a->slot == b->slot &&
	       a->epoch == b->epoch && a->flags == b->flags &&
	       a->kernel_frames == b->kernel_frames && a->user_frames == b->user_frames &&
	       a->runtime_frames == b->runtime_frames && a->runtime_end == b->runtime_end &&
	       a->user_error == b->user_error && a->stop_reason == b->stop_reason &&
	       a->image == b->image && a->rule_id == b->rule_id && a->cgroup_id == b->cgroup_id &&
	       a->wait == b->wait && memcmp(a->comm, b->comm, sizeof(a->comm)) == 0;
}

/* `sample` has the frames of `plain`. */
static struct wait_stack *find_stack(const struct wait_stacks *s, uint64_t hash,
				     const struct stack_sample *plain,
				     const struct stack_sample *sample, const struct look_on *on)
{
	size_t frames = frames_of(sample) * sizeof(struct frame);
	struct wait_stack *at = idmap_get(&s->by_hash, hash);

	while (at && (!is_same(&at->sample, plain) || memcmp(&at->on, on, sizeof(*on)) != 0 ||
		      memcmp(at->sample.frames, sample->frames, frames) != 0))
		at = at->next;
	return at;
}

struct wait_stack *wait_stacks_get(struct wait_stacks *s, const struct stack_sample *sample,
				   const struct look_on *on)
{
	size_t frames = frames_of(sample) * sizeof(struct frame);
	struct look_on plain_on = wait_objects_plain(on);
	struct stack_sample plain;
	struct wait_stack *stack;
	uint64_t hash;

	memset(&plain, 0, sizeof(plain));
	make_plain(sample, &plain);
	hash = mix_bytes(mix_bytes(0, &plain, sizeof(plain)), &plain_on, sizeof(plain_on));
	hash = mix_bytes(hash, sample->frames, frames) | 1;
	stack = find_stack(s, hash, &plain, sample, &plain_on);
	if (stack)
		return wait_stack_ref(stack);
	stack = malloc(bytes_of(sample));
	if (!stack)
		return NULL;
	stack->next = idmap_get(&s->by_hash, hash);
	if (idmap_put(&s->by_hash, hash, stack) < 0) {
		free(stack);
		return NULL;
	}
	stack->hash = hash;
	stack->place = mix_bytes(sample->wait, sample->frames, frames) | 1;
	stack->refs = 1;
	stack->on = plain_on;
	memcpy(&stack->sample, &plain, sizeof(plain));
	memcpy(stack->sample.frames, sample->frames, frames);
	s->bytes += bytes_of(sample);
	hold_modules(stack, 1);
	return stack;
}

struct wait_stack *wait_stack_ref(struct wait_stack *stack)
{
	stack->refs++;
	return stack;
}

void wait_stacks_drop(struct wait_stacks *s, struct wait_stack *stack)
{
	struct wait_stack *first = idmap_get(&s->by_hash, stack->hash), *at = first;

	if (--stack->refs)
		return;
	if (first == stack && !stack->next)
		idmap_remove(&s->by_hash, stack->hash);
	else if (first == stack)
		/* Replaces the entry, which needs no memory. */
		(void)idmap_put(&s->by_hash, stack->hash, stack->next);
	while (at && at != stack && at->next != stack)
		at = at->next;
	if (at && at != stack)
		at->next = stack->next;
	hold_modules(stack, -1);
	s->bytes -= bytes_of(&stack->sample);
	free(stack);
}
