/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tick_runtime.h: adds the frames of a language runtime to the sample of a tick (python_walk.h). */
#ifndef TROCAR_BPF_CPU_TICK_RUNTIME_H
#define TROCAR_BPF_CPU_TICK_RUNTIME_H

#include "bpf/kernel/kernel_runtime.h"
#include "bpf/runtimes/python_walk.h"
#include "bpf/stack/stack.h"

/* Copies the names that a look at threads of this process has left to its ticks. */
static long name_wanted(__u32 i, void *context)
{
	__u32 number = *(__u32 *)context;
	struct runtime_facts *facts = bpf_map_lookup_elem(&runtime_facts, &number);
	struct runtime_walk *w = runtime_walk_get();
	__u64 object;

	if (!facts || !w || !READ_WORD(w->copies))
		return 1;
	i &= RUNTIME_WANTED - 1;
	object = READ_WORD(facts->wanted[i].object);
	if (object)
		facts->has_wanted = 1;
	if (!object || READ_WORD(facts->wanted[i].tgid) != w->wants)
		return 0;
	facts->wanted[i].object = 0;
	if (!runtime_read(w->code_words, RUNTIME_CODE_BYTES, object) &&
	    w->code_words[1] == w->facts.values[RUNTIME_SYMBOL_CODE])
		tick_runtime_number(object, number);
	return 0;
}

/*
 * Walks the current thread, after its native stack was walked by table `number`, and puts its
 * frames at `frames` + at of stack_scratch. `index` is the slot of its watch. Returns their bytes;
 * 0 if its process has no runtime. A global function, as stack_walk.
 */
__noinline int tick_runtime(__u32 at, __u32 number, __u32 index)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct stack_buffer *b = map_single(&stack_scratch);
	struct runtime_walk *w = runtime_walk_get();
	struct sample_runtime *head;
	struct runtime_facts *facts;
	__u64 offset = at, bytes;
	int count;

	if (!b || !w)
		return 0;
	w->copies = RUNTIME_COPIES;
	w->wants = 0;
	w->slot = index;
	count = tick_python_walk(number, b->walk.table_generation, task_thread_pointer(task));
	facts = bpf_map_lookup_elem(&runtime_facts, &number);
	if (count >= 0 && facts && READ_WORD(facts->has_wanted)) {
		facts->has_wanted = 0;
		w->wants = task->tgid;
		bpf_loop(RUNTIME_WANTED, name_wanted, &number, 0);
	}
	asm volatile("" : "+r"(offset));
	if (count < 0 ||
	    offset > KERNEL_STACK_BYTES + USER_RAW_BYTES + sizeof(struct frame_build_id))
		return 0;
	head = (struct sample_runtime *)(b->frames + offset);
	head->end = w->end;
	head->pad = 0;
	head->version = runtime_layout(w)->version;
	bytes = bound_bytes(count, RUNTIME_FRAMES_MAX) * sizeof(__u64);
	head->frames = bytes / sizeof(__u64);
	if (bytes && bpf_probe_read_kernel(b->frames + offset + sizeof(*head), bytes, w->words))
		return 0;
	b->sample.flags |= SAMPLE_RUNTIME;
	return sizeof(*head) + bytes;
}

#endif
