/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/sampling/stack_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/macro.h"

/* Samples that differ in one of these flags are different stacks. */
#define STACK_FLAGS                                                                                \
	(SAMPLE_IN_USER | SAMPLE_KTHREAD | SAMPLE_UNWOUND | SAMPLE_MEMORY_STALL | SAMPLE_RUNTIME | \
	 STACK_SAMPLE_CUT)

const char *stack_table_phase(enum phase phase)
{
	static const char *const names[] = {
		[PHASE_BEFORE] = "before",
		[PHASE_ONSET] = "onset",
		[PHASE_DURING] = "during",
	};

	return names[phase];
}

void stack_table_init(struct stack_table *s, struct stack_budget *budget)
{
	*s = (struct stack_table){ .budget = budget };
	idmap_init(&s->by_hash, STACK_TABLE_MAX);
	idmap_init(&s->threads, 4 * STACK_TABLE_MAX);
	idmap_init(&s->cgroups, STACK_TABLE_CGROUPS);
}

void stack_table_done(struct stack_table *s)
{
	char *path;
	uint64_t id;

	for (size_t i = 0; i < s->count; i++)
		free(s->items[i]);
	free(s->items);
	idmap_for_each (&s->cgroups, i, id, path)
		free(path);
	idmap_done(&s->cgroups);
	idmap_done(&s->by_hash);
	idmap_done(&s->threads);
	if (s->budget)
		__atomic_sub_fetch(&s->budget->used_bytes, s->charged, __ATOMIC_RELAXED);
	*s = (struct stack_table){};
}

/*
 * Returns whether an owner of `charged` bytes may take `more`: its total may not exceed the space
 * it leaves to the others.
 */
static bool has_room(struct stack_budget *b, size_t charged, size_t more)
{
	uint64_t used;

	if (!b)
		return true;
	used = __atomic_load_n(&b->used_bytes, __ATOMIC_RELAXED) + more;
	return used <= b->max_bytes && charged + more <= b->max_bytes - used;
}

static bool may_take(const struct stack_table *s, size_t more)
{
	return has_room(s->budget, s->charged, more);
}

bool stack_table_take_budget(struct stack_budget *b, size_t bytes)
{
	if (!has_room(b, 0, bytes))
		return false;
	if (b)
		__atomic_add_fetch(&b->used_bytes, bytes, __ATOMIC_RELAXED);
	return true;
}

void stack_table_give_budget(struct stack_budget *b, size_t bytes)
{
	if (b)
		__atomic_sub_fetch(&b->used_bytes, bytes, __ATOMIC_RELAXED);
}

/* Charges the growth of the table to the budget. */
static void charge_growth(struct stack_table *s)
{
	size_t bytes = s->bytes + s->space * sizeof(struct stack *) + idmap_bytes(&s->by_hash) +
		       idmap_bytes(&s->threads);

	if (!s->budget || bytes == s->charged)
		return;
	__atomic_add_fetch(&s->budget->used_bytes, bytes - s->charged, __ATOMIC_RELAXED);
	s->charged = bytes;
}

static uint64_t mix_word(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ (hash >> 29);
}

/* The lock of a sample with SAMPLE_WAKER; in other samples the member may hold anything. */
static uint64_t lock_address_of(const struct stack_sample *sample)
{
	return sample->flags & SAMPLE_WAKER ? sample->lock.address : 0;
}

static uint32_t lock_tgid_of(const struct stack_sample *sample)
{
	return sample->flags & SAMPLE_WAKER ? sample->lock.tgid : 0;
}

static uint64_t hash_sample(const struct stack_sample *sample, enum phase phase)
{
	size_t n = (size_t)sample->kernel_frames + sample->user_frames;
	uint64_t comm[2], hash;

	memcpy(comm, sample->comm, sizeof(comm));
	hash = mix_word(mix_word(sample->start_ns, sample->cgroup_id),
			(((uint64_t)sample->stop_reason << 32 | sample->tgid) << 8) | phase);
	hash = mix_word(mix_word(hash, comm[0]), comm[1]);
	hash = mix_word(hash, (uint64_t)sample->on << 16 | (uint64_t)sample->runtime_end << 8 |
				      sample->wait);
	hash = mix_word(mix_word(hash, lock_address_of(sample)), lock_tgid_of(sample));
	hash = mix_word(hash, (uint64_t)sample->call << 32 | (sample->flags & STACK_FLAGS));
	hash = mix_word(hash, ((uint64_t)sample->kernel_frames << 16) | sample->user_frames);
	for (size_t i = 0; i < n; i++)
		hash = mix_word(mix_word(hash, (uintptr_t)sample->frames[i].module),
				sample->frames[i].offset);
	return hash ? hash : 1;
}

static bool is_same(const struct stack *s, const struct stack_sample *sample, enum phase phase)
{
	size_t n = (size_t)sample->kernel_frames + sample->user_frames;

	return s->phase == phase && s->wait == sample->wait && s->on == sample->on &&
	       s->flags == (sample->flags & STACK_FLAGS) && s->stop_reason == sample->stop_reason &&
	       s->call == sample->call && s->tgid == sample->tgid &&
	       s->start_ns == sample->start_ns && s->cgroup_id == sample->cgroup_id &&
	       s->kernel_frames == sample->kernel_frames && s->user_frames == sample->user_frames &&
	       s->runtime_frames == sample->runtime_frames &&
	       s->runtime_end == sample->runtime_end &&
	       s->lock_address == lock_address_of(sample) && s->lock_tgid == lock_tgid_of(sample) &&
	       !memcmp(s->comm, sample->comm, sizeof(s->comm)) &&
	       !memcmp(s->frames, sample->frames, n * sizeof(*s->frames));
}

static int grow_items(struct stack_table *s)
{
	size_t space = s->space ? 2 * s->space : 64;
	struct stack **items;

	if (s->count < s->space)
		return 0;
	if (s->count >= STACK_TABLE_MAX)
		return -ENOSPC;
	items = reallocarray(s->items, space, sizeof(struct stack *));
	if (!items)
		return -ENOMEM;
	s->items = items;
	s->space = space;
	return 0;
}

static int add_new(struct stack_table *s, const struct stack_sample *sample, enum phase phase,
		   uint64_t hash, struct stack **ret_stack)
{
	size_t frames =
		((size_t)sample->kernel_frames + sample->user_frames) * sizeof(struct frame);
	struct stack *stack;
	int r;

	if (s->bytes + sizeof(*stack) + frames > STACK_TABLE_BYTES_MAX)
		return -ENOSPC;
	if (!may_take(s, sizeof(*stack) + frames))
		return -ENOSPC;
	r = grow_items(s);
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
	stack->start_ns = sample->start_ns;
	stack->tgid = sample->tgid;
	stack->cgroup_id = sample->cgroup_id;
	stack->kernel_frames = sample->kernel_frames;
	stack->user_frames = sample->user_frames;
	stack->runtime_frames = sample->runtime_frames;
	stack->runtime_end = sample->runtime_end;
	stack->phase = (uint8_t)phase;
	stack->wait = sample->wait;
	stack->on = sample->on;
	stack->call = sample->call;
	stack->lock_address = lock_address_of(sample);
	stack->lock_tgid = lock_tgid_of(sample);
	stack->flags = sample->flags & STACK_FLAGS;
	stack->user_error = sample->user_error;
	stack->stop_reason = (uint8_t)sample->stop_reason;
	memcpy(stack->comm, sample->comm, sizeof(stack->comm));
	memcpy(stack->frames, sample->frames, frames);
	s->items[s->count++] = stack;
	s->bytes += sizeof(*stack) + frames;
	*ret_stack = stack;
	return 0;
}

int stack_table_put(struct stack_table *s, const struct stack_sample *sample, enum phase phase,
		    uint64_t weight_ns, struct module *exe, struct stack **ret_stack)
{
	uint64_t hash = hash_sample(sample, phase), thread;
	struct stack *stack = idmap_get(&s->by_hash, hash);
	int r;

	while (stack && !is_same(stack, sample, phase))
		stack = stack->next;
	if (!stack) {
		r = add_new(s, sample, phase, hash, &stack);
		if (r < 0)
			return r;
	}
	stack->count++;
	stack->weight_ns += weight_ns;
	if (!stack->exe)
		stack->exe = exe;
	/*
	 * When idmap `threads` or the budget is full a thread may be counted twice, never too few
	 * times.
	 */
	thread = ((uint64_t)(stack->number + 1) << 32) | sample->tid;
	if (!idmap_get(&s->threads, thread)) {
		stack->threads++;
		if (may_take(s, 0))
			idmap_put(&s->threads, thread, stack);
	}
	charge_growth(s);
	*ret_stack = stack;
	return 0;
}

int stack_table_add(struct stack_table *s, const struct stack_sample *sample, enum phase phase,
		    uint64_t weight_ns, struct module *exe)
{
	struct stack *stack;

	return stack_table_put(s, sample, phase, weight_ns, exe, &stack);
}

void stack_table_name(struct stack_table *s, uint64_t cgroup_id, const char *path)
{
	char *copy = strdup(path);

	free(idmap_remove(&s->cgroups, cgroup_id));
	if (copy && idmap_put(&s->cgroups, cgroup_id, copy) < 0)
		free(copy);
}

const char *stack_table_cgroup(const struct stack_table *s, uint64_t cgroup_id)
{
	return idmap_get(&s->cgroups, cgroup_id);
}
