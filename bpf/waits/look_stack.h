/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * look_stack.h: takes the stacks of a thread that does not run. The user stack is walked by the
 * unwind table of its process, as in a tick (stack.h), or by frame pointers if there is no table.
 * In the second case every caller must be in executable memory, after a call instruction. Only
 * addresses of code leave this code, never memory.
 */
#ifndef TROCAR_BPF_WAITS_LOOK_STACK_H
#define TROCAR_BPF_WAITS_LOOK_STACK_H

#include "bpf/unwind/caller_check.h"
#include "bpf/unwind/process_table.h"
#include "bpf/waits/look_memory.h"
#include "bpf/waits/look_runtime.h"

/* The parameters of one walk. */
struct look_walk {
	struct looker *looker;
	struct task_struct *task;
	struct unwind_ranges *ranges;
	const struct unwind_process *process;
};

/*
 * Sets the first frame from the registers with which the thread left user mode, and the limits of
 * its stacks.
 */
static __always_inline void look_begin(struct looker *l, struct task_struct *task)
{
	const struct pt_regs *regs = (const struct pt_regs *)bpf_task_pt_regs(task);
	struct unwind_frame *f = &l->walk.frame;

#if defined(__TARGET_ARCH_x86)
	f->pc = BPF_CORE_READ(regs, ip);
	f->sp = BPF_CORE_READ(regs, sp);
	f->fp = BPF_CORE_READ(regs, bp);
	f->link = BPF_CORE_READ(regs, di);
	f->bounds.thread = BPF_CORE_READ(task, thread.fsbase);
#else
	f->pc = BPF_CORE_READ(regs, pc);
	f->sp = BPF_CORE_READ(regs, sp);
	f->fp = BPF_CORE_READ(regs, regs[29]);
	f->link = BPF_CORE_READ(regs, regs[30]);
	f->bounds.thread = 0;
#endif
	f->exact = 1;
	f->fp_lost = 0;
	f->bounds.main = BPF_CORE_READ(task, mm, start_stack);
	f->bounds.alternate = BPF_CORE_READ(task, sas_ss_sp);
	f->bounds.alternate_bytes = BPF_CORE_READ(task, sas_ss_size);
	unwind_walk_begin(&l->walk, (__u64)BPF_CORE_READ(task, mm));
	l->pgd = (__u64)BPF_CORE_READ(task, mm, pgd);
	l->record.sample.user_frames = 0;
}

/* Adds an address after the frames. Returns false if there is no space. */
static __always_inline bool look_add(struct looker *l, __u64 pc)
{
	__u32 at = l->at;

	if (at > sizeof(l->frames) - sizeof(__u64))
		return false;
	*(__u64 *)(l->frames + at) = pc;
	l->at = at + sizeof(__u64);
	l->record.sample.user_frames++;
	return true;
}

/* Adds one frame, as walk_frame of stack.h. */
static long look_at_frame(__u32 i, struct look_walk *w)
{
	struct looker *l = w->looker;
	__u64 pc = l->walk.frame.pc;

	if (i > 0 && l->walk.frame.exact)
		pc |= SAMPLE_INTERRUPTED;
	if (i > 0 && l->walk.by_pointer)
		pc |= l->walk.adjacent ? SAMPLE_FOLLOWED | SAMPLE_ADJACENT : SAMPLE_FOLLOWED;
	/* Without caches, because their entries would be torn if one reader preempts another. */
	if (!unwind_walk_advance(&l->walk, w->ranges, w->process, NULL, NULL)) {
		if (i > 0)
			return 1;
		if (l->walk.stop_reason == UNWIND_END_CHANGED)
			l->record.sample.flags |= SAMPLE_LEAF_CHANGED;
	}
	return !look_add(l, pc) || l->walk.stop_reason != UNWIND_END_NONE;
}

/* Walks the user stack by the table of the process. Returns false if there is no such table. */
static __always_inline bool look_by_table(struct look_walk *w)
{
	struct looker *l = w->looker;
	__u64 generation = l->look.generation;
	__u32 number = l->look.unwind - 1;
	struct sample *s = &l->record.sample;

	w->ranges = bpf_map_lookup_elem(&unwind_ranges, &number);
	w->process = bpf_map_lookup_elem(&unwind_process, &number);
	if (!w->ranges || !w->process)
		return false;
	l->walk.table_generation = generation;
	bpf_loop(STACK_FRAMES, look_at_frame, w, 0);
	if (l->walk.stop_reason == UNWIND_END_NONE)
		l->walk.stop_reason = UNWIND_END_DEPTH;
	/* The table was refilled during the walk: only the innermost frame is certain. */
	if (READ_ORDERED(w->ranges->table_generation) != generation) {
		l->walk.stop_reason = UNWIND_END_SWITCHED;
		s->user_frames = s->user_frames > 0;
	}
	s->flags |= SAMPLE_UNWOUND | (l->walk.by_pointer ? SAMPLE_BY_POINTER : 0);
	s->table_generation = (__u32)generation;
	s->stop_reason = l->walk.stop_reason;
	return true;
}

static long take_executable(struct task_struct *task, struct vm_area_struct *vma, void *context)
{
	*(__u32 *)context = !!(BPF_CORE_READ(vma, vm_flags) & VM_EXEC);
	return 0;
}

/*
 * Returns whether `pc` is a return address in executable memory. It only tries the mmap lock, and
 * does not wait for it.
 */
static __always_inline bool look_is_caller(struct look_walk *w, __u64 pc)
{
	__u32 executable = 0;
	__u64 before;

	if (unwind_read(&before, sizeof(before), pc - sizeof(before)) || !is_call(before))
		return false;
	bpf_find_vma(w->task, pc, take_executable, &executable, 0);
	return executable;
}

static long look_at_pointer(__u32 i, struct look_walk *w)
{
	struct looker *l = w->looker;
	__u64 pc = l->walk.frame.pc;

	if (i > 0 && !look_is_caller(w, pc))
		return 1;
	return !look_add(l, pc) || unwind_step_fp(&l->walk.frame) != UNWIND_END_NONE;
}

/*
 * Takes the user stack, by the table of the process if it has one, and puts it after the kernel
 * frames. Sets user_frames, stop_reason, table_generation and flags of the sample.
 */
static __always_inline void look_at_user(struct looker *l, struct task_struct *task)
{
	struct look_walk w = { .looker = l, .task = task };

	look_begin(l, task);
	l->at = l->record.sample.kernel_frames * sizeof(__u64);
	l->runtime_bytes = 0;
	if (!l->look.generation || !look_by_table(&w))
		bpf_loop(STACK_FRAMES, look_at_pointer, &w, 0);
	look_at_runtime(l, task);
}

#endif
