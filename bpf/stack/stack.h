/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stack.h: takes the stacks of the current task; no other code does. The user stack is walked by
 * the unwind table of the process if one is published (unwind_walk.h), else by frame pointers with
 * the kernel's helper (caller_check.h). Only addresses of code leave this code, never memory.
 */
#ifndef TROCAR_BPF_STACK_STACK_H
#define TROCAR_BPF_STACK_STACK_H

#include "bpf/kernel/kernel.h"
#include "bpf/mappings/map_changes.h"
#include "bpf/maps/maps.h"
#include "bpf/unwind/caller_check.h"
#include "bpf/unwind/process_table.h"
#include "bpf/unwind/unwind_walk.h"

#define KERNEL_STACK_BYTES (STACK_FRAMES * sizeof(__u64))
#define USER_RAW_BYTES	   (STACK_FRAMES * sizeof(__u64))
#define USER_ID_BYTES	   (STACK_FRAMES * sizeof(struct frame_build_id))

_Static_assert(sizeof(struct frame_build_id) == sizeof(struct bpf_stack_build_id), "frame layout");
_Static_assert(__builtin_offsetof(struct frame_build_id, build_id) ==
		       __builtin_offsetof(struct bpf_stack_build_id, build_id),
	       "frame layout");
_Static_assert(__builtin_offsetof(struct frame_build_id, offset_or_ip) ==
		       __builtin_offsetof(struct bpf_stack_build_id, offset),
	       "frame layout");

#define KERNEL_STACK_WORDS 64 /* words read at once */

/* State of a walk of the kernel stack (kernel_stack.h). */
struct kernel_walk {
	__u64 ip, sp, bp;
	__u32 leaf; /* the frame was interrupted: its ip is the next instruction to run */
	__u32 frames;
	__u32 ended;	   /* the walk reached the outermost frame */
	__u32 place;	   /* place of the last row of a return address */
	__u64 base, bytes; /* kernel address of `words`, and their bytes */
	__u64 words[KERNEL_STACK_WORDS];
};

/* A watch that takes the sample of a tick. */
struct taker {
	__u32 slot, epoch;
	__u32 seq;
	__u32 capture; /* SAMPLE_CAPTURE, or 0 */
};

/* The takers of one tick, the nearest watch first. */
struct takers {
	struct taker items[WATCHES_NESTED];
	__u32 count;
	__u32 capture; /* SAMPLE_CAPTURE if one of them captures */
};

_Static_assert((WATCHES_NESTED & (WATCHES_NESTED - 1)) == 0, "WATCHES_NESTED is a mask");

/*
 * A sample as it is put into the ring: kernel frames, then user frames, and after user frames that
 * are build-ids their addresses (SAMPLE_ADDRESSES).
 */
struct stack_buffer {
	/*
	 * Private, not in the record. The two walks run one after the other in the same cache
	 * lines.
	 */
	union {
		struct unwind_walk walk;
		struct kernel_walk kernel;
	};
	__u32 kernel_walks;   /* walks since the last comparison on this CPU */
	__u32 calls;	      /* the sampler must wake the consumer */
	__u32 puts;	      /* records put by this CPU */
	struct takers takers; /* of the sampler; here because this memory is used anyway */
	__u32 at;	      /* offset of the next user frame in `frames` */
	struct sample sample;
	__u8 frames[KERNEL_STACK_BYTES + USER_ID_BYTES + USER_RAW_BYTES];
};

/*
 * Too large for the BPF stack. Ticks do not nest: perf does not run one program while another runs
 * on the same CPU.
 */
__weak MAP(PERCPU_ARRAY, stack_scratch, __u32, struct stack_buffer, 1);

/* Private: only findings of the programs themselves may resolve a frame. */
__weak MAP(PERCPU_ARRAY, stack_cache, __u32, struct unwind_cache, 1);

/* Private, for the same reason. */
__weak MAP(PERCPU_ARRAY, stack_code, __u32, struct unwind_code_cache, 1);

enum stack_want {
	STACK_USER = 1u << 1,
	STACK_BUILD_ID = 1u << 2, /* user frames as struct frame_build_id, else addresses */
};

/*
 * Limits a length to `max`. The asm keeps the compiler from a form that the verifier cannot follow.
 */
static __always_inline __u64 bound_bytes(long bytes, __u64 max)
{
	__u64 n = bytes < 0 ? 0 : (__u64)bytes;

	asm volatile("" : "+r"(n));
	return n > max ? max : n;
}

/*
 * Reads the registers with which the task left user mode, also if the tick interrupted the kernel.
 */
static __always_inline void read_registers(struct task_struct *task, struct unwind_frame *ret_frame)
{
	const struct pt_regs *regs = (const struct pt_regs *)bpf_task_pt_regs(task);

#if defined(__TARGET_ARCH_x86)
	ret_frame->pc = regs->ip;
	ret_frame->sp = regs->sp;
	ret_frame->fp = regs->bp;
	ret_frame->link = regs->di;
#else
	ret_frame->pc = regs->pc;
	ret_frame->sp = regs->sp;
	ret_frame->fp = regs->regs[29];
	ret_frame->link = regs->regs[30];
#endif
	ret_frame->exact = 1;
	ret_frame->fp_lost = 0;
}

/*
 * Reads the limits of the thread's stacks. The thread has user memory: sampler.bpf.c has checked
 * it.
 */
static __always_inline void read_bounds(struct task_struct *task, const struct mm_struct *mm,
					struct unwind_frame *f)
{
	f->bounds.main = mm ? mm->start_stack : 0;
#if defined(__TARGET_ARCH_x86)
	f->bounds.thread = task->thread.fsbase;
#else
	f->bounds.thread = 0;
#endif
	f->bounds.alternate = task->sas_ss_sp;
	f->bounds.alternate_bytes = task->sas_ss_size;
}

/* The map elements that each frame of a walk needs, looked up once. */
struct stack_tables {
	struct stack_buffer *buffer;
	struct unwind_ranges *ranges;
	const struct unwind_process *process;
	struct unwind_cache *cache;
	struct unwind_code_cache *code;
};

/*
 * Returns the place of the process's checks in the cache. Checks that found ranges unchanged stay
 * valid as long as nothing has changed in the process since.
 */
static __always_inline __u32 begin_checks(const struct mm_struct *mm, const struct process_key *key,
					  __u64 generation, struct unwind_cache *cache)
{
	const struct unwind_checked now = { .start_ns = key->start_ns,
					    .table_generation = generation,
					    .changes = map_changes_count(mm),
					    .tgid = key->tgid };

	return unwind_cache_begin(cache, &now);
}

/* Looks up the elements for table `number`. Returns false if there is no such table. */
static __always_inline bool find_tables(struct stack_buffer *b, __u32 number,
					struct stack_tables *ret_tables)
{
	ret_tables->buffer = b;
	ret_tables->ranges = bpf_map_lookup_elem(&unwind_ranges, &number);
	ret_tables->process = bpf_map_lookup_elem(&unwind_process, &number);
	ret_tables->cache = map_single(&stack_cache);
	ret_tables->code = map_single(&stack_code);
	return ret_tables->ranges && ret_tables->process && ret_tables->cache && ret_tables->code;
}

/*
 * Adds one frame. The innermost frame is added even if it is in no range: the task was running
 * there.
 */
static long walk_frame(__u32 i, struct stack_tables *tables)
{
	struct stack_buffer *b = tables->buffer;
	__u64 pc = b->walk.frame.pc;
	__u32 at = b->at;

	if (i > 0 && b->walk.frame.exact)
		pc |= SAMPLE_INTERRUPTED;
	if (i > 0 && b->walk.by_pointer)
		pc |= b->walk.adjacent ? SAMPLE_FOLLOWED | SAMPLE_ADJACENT : SAMPLE_FOLLOWED;
	if (at > KERNEL_STACK_BYTES + USER_RAW_BYTES)
		return 1;
	if (!unwind_walk_advance(&b->walk, tables->ranges, tables->process, tables->cache,
				 tables->code)) {
		if (i > 0)
			return 1;
		if (b->walk.stop_reason == UNWIND_END_CHANGED)
			b->sample.flags |= SAMPLE_LEAF_CHANGED;
	}
	*(__u64 *)(b->frames + at) = pc;
	b->at = at + sizeof(__u64);
	b->sample.user_frames++;
	return b->walk.stop_reason != UNWIND_END_NONE;
}

/*
 * Walks the user stack of the current task, of process `key`, by table `number`, and puts it at
 * `frames` + at of stack_scratch. Returns its bytes; 0 if the table does not belong to this
 * process. A global function: the verifier checks it once, and not after each path that leads to
 * it.
 */
__weak __noinline int stack_walk(const struct process_key *key, __u32 at, __u32 number)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct mm_struct *mm = task->mm; /* before the branches (task_keys.h) */
	struct stack_buffer *b = map_single(&stack_scratch);
	struct stack_tables tables;
	struct process_key own; /* 6.1 accepts a map key only from this function's own stack */
	__u64 generation;

	if (!key || !b)
		return 0;
	own = *key;
	if (!find_tables(b, number, &tables))
		return 0;
	generation = process_table_check(tables.ranges, tables.process, task->self_exec_id, &own);
	if (!generation)
		return 0;
	b->walk.process = begin_checks(mm, &own, generation, tables.cache);
	read_registers(task, &b->walk.frame);
	read_bounds(task, mm, &b->walk.frame);
	unwind_walk_begin(&b->walk, (__u64)mm);
	b->walk.in_call = !(b->sample.flags & SAMPLE_IN_USER);
	b->walk.table_generation = generation;
	b->at = at;
	b->sample.user_frames = 0;
	bpf_loop(STACK_FRAMES, walk_frame, &tables, 0);
	if (b->walk.stop_reason == UNWIND_END_NONE)
		b->walk.stop_reason = UNWIND_END_DEPTH;
	/*
	 * A tripwire: the consumer must not have a table refilled before the last walk by it has
	 * ended. A changed generation proves that it did, and only the innermost frame is kept. An
	 * unpublished table is no fault: it was published when the walk began, and stays whole
	 * until the walk ends.
	 */
	if (READ_ORDERED(tables.ranges->table_generation) != generation) {
		b->walk.stop_reason = UNWIND_END_SWITCHED;
		b->sample.user_frames = b->sample.user_frames > 0;
	}
	b->sample.flags |= SAMPLE_UNWOUND | (b->walk.by_pointer ? SAMPLE_BY_POINTER : 0);
	b->sample.table_generation = (__u32)generation;
	b->sample.stop_reason = b->walk.stop_reason;
	return b->sample.user_frames * sizeof(__u64);
}

#define STACK_ADDRESSES       \
	(KERNEL_STACK_BYTES + \
	 USER_ID_BYTES) /* offset in `frames` of addresses that are not checked yet */

/*
 * Fetches the user stack twice: as build-ids at `at`, and as addresses at STACK_ADDRESSES. Returns
 * the number of frames. Returns 1 if the two differ in length: then only the innermost frame is
 * certain to be equal.
 */
static __always_inline __u32 fetch_user_frames(void *ctx, struct stack_buffer *b, __u64 at)
{
	long raw, ids;

	raw = bpf_get_stack(ctx, b->frames + STACK_ADDRESSES, USER_RAW_BYTES, BPF_F_USER_STACK);
	ids = raw > 0 ? bpf_get_stack(ctx, b->frames + at, USER_ID_BYTES,
				      BPF_F_USER_STACK | BPF_F_USER_BUILD_ID)
		      : raw;
	b->sample.user_error = ids < 0 ? ids : 0;
	if (ids <= 0)
		return 0;
	raw = bound_bytes(raw, USER_RAW_BYTES) / sizeof(__u64);
	ids = bound_bytes(ids, USER_ID_BYTES) / sizeof(struct frame_build_id);
	return ids == raw ? raw : 1;
}

/*
 * Returns how many of the `count` frames, with build-ids at `frames` + at of stack_scratch and
 * addresses at STACK_ADDRESSES, may leave the kernel. A global function, as stack_walk.
 */
__weak __noinline int stack_check_callers(__u32 at, __u32 count)
{
	struct stack_buffer *b = map_single(&stack_scratch);

	if (!b)
		return 0;
	at = bound_bytes(at, KERNEL_STACK_BYTES);
	return (int)caller_check_count(bpf_get_current_task_btf(),
				       (const struct frame_build_id *)(b->frames + at),
				       (const __u64 *)(b->frames + STACK_ADDRESSES), count);
}

/*
 * Takes the user stack by frame pointers and puts it at b->frames + at: as addresses, or as
 * build-ids followed by their addresses, from which the consumer learns the build-id of each
 * mapping. Returns its bytes.
 */
static __noinline __u64 take_pointer_stack(void *ctx, struct stack_buffer *b, __u64 at, __u32 want)
{
	__u64 start = bound_bytes(at, KERNEL_STACK_BYTES), ids = 0, bytes;
	__u32 count = fetch_user_frames(ctx, b, start);

	if (!count)
		return 0;
	count = stack_check_callers(start, count);
	b->sample.user_frames = count;
	if (want & STACK_BUILD_ID) {
		ids = bound_bytes(count * sizeof(struct frame_build_id), USER_ID_BYTES);
		b->sample.flags |= SAMPLE_ADDRESSES;
	}
	bytes = bound_bytes(count * sizeof(__u64), USER_RAW_BYTES);
	start = bound_bytes(start + ids, STACK_ADDRESSES);
	if (bpf_probe_read_kernel(b->frames + start, bytes, b->frames + STACK_ADDRESSES))
		return 0;
	return ids + bytes;
}

/*
 * Appends the build-id of the leaf to a stack that was walked by the table: for a consumer that
 * requested build-ids, and for a leaf that is not in the table. Returns its bytes.
 */
static __noinline __u64 add_leaf_build_id(void *ctx, struct stack_buffer *b, __u64 at)
{
	long r = bpf_get_stack(
		ctx, b->frames + bound_bytes(at, KERNEL_STACK_BYTES + USER_RAW_BYTES),
		sizeof(struct frame_build_id), BPF_F_USER_STACK | BPF_F_USER_BUILD_ID);

	b->sample.flags &= ~(__u32)SAMPLE_BUILD_ID;
	if (r != sizeof(struct frame_build_id))
		return 0;
	b->sample.flags |= SAMPLE_LEAF_ID;
	return sizeof(struct frame_build_id);
}

/* Returns true if the walk stopped at its leaf, in memory that is not in the table. */
static __always_inline bool is_leaf_unknown(const struct stack_buffer *b)
{
	return b->sample.user_frames == 1 && (b->sample.stop_reason == UNWIND_END_NO_MAPPING ||
					      b->sample.stop_reason == UNWIND_END_CHANGED);
}

/* The process of the current task, and its table. */
struct stack_owner {
	const struct process_key *key;
	__u32 unwind; /* target.unwind: the number of its table plus 1; 0: none */
};

/*
 * Takes the user stack, if `want` (enum stack_want) includes it, into b->frames, after the
 * sample.kernel_frames that are already there. Sets user_frames, user_error and stop_reason of
 * b->sample, and its flags that describe the frames. Returns the bytes of all frames, at most
 * sizeof(b->frames). A stack that is not wanted or is empty has 0 frames and no error
 * (bpf_get_stack, kernel/bpf/stackmap.c).
 */
static __always_inline __u64 stack_take(void *ctx, const struct stack_owner *o,
					struct stack_buffer *b, __u32 want)
{
	__u64 kernel_bytes = READ_WORD(b->sample.kernel_frames) * sizeof(__u64), user_bytes = 0;

	kernel_bytes = bound_bytes((long)kernel_bytes, KERNEL_STACK_BYTES);
	b->sample.user_frames = 0;
	b->sample.user_error = 0;
	b->sample.stop_reason = UNWIND_END_NONE;
	if (o->unwind && want & STACK_USER)
		user_bytes = bound_bytes(stack_walk(o->key, kernel_bytes, o->unwind - 1),
					 USER_RAW_BYTES);
	if (user_bytes && (want & STACK_BUILD_ID || is_leaf_unknown(b)))
		user_bytes += add_leaf_build_id(ctx, b, kernel_bytes + user_bytes);
	if (!user_bytes && want & STACK_USER)
		user_bytes = take_pointer_stack(ctx, b, kernel_bytes, want);
	return bound_bytes(kernel_bytes + user_bytes, sizeof(b->frames));
}

#endif
