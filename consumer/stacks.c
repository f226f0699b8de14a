/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/macro.h"

/* Flags that tell stacks apart. */
#define STACK_FLAGS (SAMPLE_KTHREAD | SAMPLE_UNWOUND | HIT_CUT)

void stacks_init(struct stacks *s)
{
	*s = (struct stacks){};
	idmap_init(&s->by_hash, STACKS_MAX);
	idmap_init(&s->threads, 4 * STACKS_MAX);
}

void stacks_done(struct stacks *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->items[i]);
	free(s->items);
	idmap_done(&s->by_hash);
	idmap_done(&s->threads);
	*s = (struct stacks){};
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ (hash >> 29);
}

static uint64_t hash_hit(const struct hit *h, enum phase phase)
{
	size_t n = (size_t)h->kernel_frames + h->user_frames;
	uint64_t comm[2], hash;

	memcpy(comm, h->comm, sizeof(comm));
	hash = mix(h->start_ns, (((uint64_t)h->user_end << 32 | h->tgid) << 8) | phase);
	hash = mix(mix(hash, comm[0]), comm[1]);
	hash = mix(hash, ((uint64_t)(h->flags & STACK_FLAGS) << 32) |
				 ((uint64_t)h->kernel_frames << 16) | h->user_frames);
	for (size_t i = 0; i < n; i++)
		hash = mix(mix(hash, (uintptr_t)h->frames[i].module), h->frames[i].offset);
	return hash ? hash : 1;
}

static bool same(const struct stack *s, const struct hit *h, enum phase phase)
{
	size_t n = (size_t)h->kernel_frames + h->user_frames;

	return s->phase == phase && s->flags == (h->flags & STACK_FLAGS) &&
	       s->user_end == h->user_end && s->tgid == h->tgid && s->start_ns == h->start_ns &&
	       s->kernel_frames == h->kernel_frames && s->user_frames == h->user_frames &&
	       !memcmp(s->comm, h->comm, sizeof(s->comm)) &&
	       !memcmp(s->frames, h->frames, n * sizeof(*s->frames));
}

static int grow(struct stacks *s)
{
	size_t space = s->space ? 2 * s->space : 64;
	struct stack **items;

	if (s->count < s->space)
		return 0;
	if (s->count >= STACKS_MAX)
		return -ENOSPC;
	items = reallocarray(s->items, space, sizeof(struct stack *));
	if (!items)
		return -ENOMEM;
	s->items = items;
	s->space = space;
	return 0;
}

static int add_new(struct stacks *s, const struct hit *h, enum phase phase, uint64_t hash,
		   struct stack **ret_stack)
{
	size_t frames = ((size_t)h->kernel_frames + h->user_frames) * sizeof(struct frame);
	struct stack *stack;
	int r;

	if (s->bytes + sizeof(*stack) + frames > STACKS_BYTES_MAX)
		return -ENOSPC;
	r = grow(s);
	if (r < 0)
		return r;
	stack = calloc(1, sizeof(*stack) + frames);
	if (!stack)
		return -ENOMEM;
	stack->next = idmap_get(&s->by_hash, hash);
	r = idmap_put(&s->by_hash, hash, stack);
	if (r < 0) {
		free(stack);
		return r;
	}
	stack->hash = hash;
	stack->number = (uint32_t)s->count;
	stack->start_ns = h->start_ns;
	stack->tgid = h->tgid;
	stack->kernel_frames = h->kernel_frames;
	stack->user_frames = h->user_frames;
	stack->phase = (uint8_t)phase;
	stack->flags = h->flags & STACK_FLAGS;
	stack->user_error = h->user_error;
	stack->user_end = (uint8_t)h->user_end;
	memcpy(stack->comm, h->comm, sizeof(stack->comm));
	memcpy(stack->frames, h->frames, frames);
	s->items[s->count++] = stack;
	s->bytes += sizeof(*stack) + frames;
	*ret_stack = stack;
	return 0;
}

int stacks_add(struct stacks *s, const struct hit *h, enum phase phase, uint64_t weight_ns,
	       struct module *exe)
{
	uint64_t hash = hash_hit(h, phase), thread;
	struct stack *stack = idmap_get(&s->by_hash, hash);
	int r;

	while (stack && !same(stack, h, phase))
		stack = stack->next;
	if (!stack) {
		r = add_new(s, h, phase, hash, &stack);
		if (r < 0)
			return r;
	}
	stack->count++;
	stack->weight_ns += weight_ns;
	if (!stack->exe)
		stack->exe = exe;
	/* Beyond the table's bound a thread may be counted twice; never less than there are. */
	thread = ((uint64_t)(stack->number + 1) << 32) | h->tid;
	if (!idmap_get(&s->threads, thread)) {
		stack->threads++;
		idmap_put(&s->threads, thread, stack);
	}
	return 0;
}
