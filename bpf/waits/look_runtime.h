/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * look_runtime.h: adds the frames of a language runtime to the stacks of a thread that does not run
 * (python_walk.h).
 *
 * A page that is read may get another owner during the read. Words of it are only compared, but
 * names are copied, so names are copied only while no thread of the process runs: then the page
 * stays mapped, unless the kernel takes it, which changes the page table entry that each read
 * compares (look_fetch). Otherwise the next tick of the process copies them, from its own memory.
 */
#ifndef TROCAR_BPF_WAITS_LOOK_RUNTIME_H
#define TROCAR_BPF_WAITS_LOOK_RUNTIME_H

#include "bpf/waits/look_memory.h" /* first: it chooses the reads of another task */

#include "bpf/kernel/kernel_runtime.h"
#include "bpf/runtimes/python_walk.h"

#define LOOK_RUNTIME_COPIES  32	 /* code objects that are copied for one thread */
#define LOOK_RUNTIME_THREADS 128 /* of a process: with more, no names are copied */

static __always_inline struct runtime_walk *runtime_walk_get(void)
{
	struct looker *l = looker_get();

	return l ? &l->runtime : 0;
}

/*
 * Reads up to RUNTIME_TABLE_BYTES bytes of the process to looker.text, in pieces within one page
 * and of what look_fetch reads. Returns 0 or -1. A loop of the compiler, because the calls that
 * lead here are as deep as the verifier allows.
 */
__noinline int look_read_text(__u64 address, __u32 bytes)
{
	struct looker *l = looker_get();
	__u64 done = 0, n, in_page;

	if (!l || bytes > RUNTIME_TABLE_BYTES)
		return -1;
#pragma clang loop unroll(disable)
	for (int i = 0; i < RUNTIME_TABLE_BYTES / LOOK_FETCH_BYTES + 2; i++) {
		n = bytes - done;
		in_page = PAGE_BYTES - ((address + done) & (PAGE_BYTES - 1));
		if (n > in_page)
			n = in_page;
		if (n > LOOK_FETCH_BYTES)
			n = LOOK_FETCH_BYTES;
		if (look_fetch(address + done, n))
			return -1;
		asm volatile("" : "+r"(done), "+r"(n));
		if (done > RUNTIME_TABLE_BYTES || n > LOOK_FETCH_BYTES ||
		    bpf_probe_read_kernel(l->text + done, n, l->fetched))
			return -1;
		done += n;
		if (done >= bytes)
			return 0;
	}
	return -1;
}

static __always_inline long runtime_read(void *to, __u32 bytes, __u64 address)
{
	struct looker *l;

	if (look_read_text(address, bytes))
		return -1;
	l = looker_get();
	if (!l)
		return -1;
	return bpf_probe_read_kernel(to, bytes, l->text);
}

/* The threads of a process, one after the other. */
struct look_threads {
	const struct list_head *head, *at;
	__u32 runs; /* one of them runs, or was not examined */
};

static long look_at_sibling(__u32 i, void *context)
{
	struct look_threads *t = context;
	const struct task_struct___runtime *task;
	const struct list_head *at = t->at;

	t->runs = 1;
	t->at = BPF_CORE_READ(at, next);
	if (t->at == t->head) {
		t->runs = 0;
		return 1;
	}
	task = (const void *)((const char *)t->at -
			      bpf_core_field_offset(struct task_struct___runtime, thread_node));
	return BPF_CORE_READ(task, on_cpu) != 0;
}

/* Returns whether no thread of the process runs. */
static __always_inline bool look_process_rests(const struct task_struct *task)
{
	const struct task_struct___runtime *fields = (const void *)task;
	struct look_threads t = { .runs = 1 };
	const struct signal_struct___runtime *signal = BPF_CORE_READ(fields, signal);

	t.head = t.at =
		(const void *)((const char *)signal +
			       bpf_core_field_offset(struct signal_struct___runtime, thread_head));
	bpf_loop(LOOK_RUNTIME_THREADS, look_at_sibling, &t, 0);
	return !t.runs;
}

/*
 * Walks the sampled thread, after its native stack was walked by its table, and puts the frames
 * after the native ones. Sets looker.is_short if a name is to be copied later.
 */
static __always_inline void look_at_runtime(struct looker *l, struct task_struct *task)
{
	struct sample_runtime *head;
	__u64 at = l->at, bytes;
	int count;

	if (!(l->record.sample.flags & SAMPLE_UNWOUND))
		return;
	l->runtime.copies = look_process_rests(task) ? LOOK_RUNTIME_COPIES : 0;
	l->runtime.wants = l->runtime.copies ? 0 : l->look.key.tgid;
	l->runtime.slot = l->look.index;
	count = look_python_walk(l->look.unwind - 1, l->look.generation, task_thread_pointer(task));
	asm volatile("" : "+r"(at));
	if (count < 0 || at > 2 * LOOK_STACK_BYTES)
		return;
	head = (struct sample_runtime *)(l->frames + at);
	head->end = l->runtime.end;
	head->pad = 0;
	head->version = runtime_layout(&l->runtime)->version;
	bytes = (__u64)count;
	asm volatile("" : "+r"(bytes));
	if (bytes > RUNTIME_FRAMES_MAX)
		bytes = RUNTIME_FRAMES_MAX;
	head->frames = bytes;
	bytes *= sizeof(__u64);
	if (bytes && bpf_probe_read_kernel(l->frames + at + sizeof(*head), bytes, l->runtime.words))
		return;
	if (READ_WORD(l->runtime.delayed))
		l->is_short = 1;
	l->record.sample.flags |= SAMPLE_RUNTIME;
	l->runtime_bytes = sizeof(*head) + bytes;
}

#endif
