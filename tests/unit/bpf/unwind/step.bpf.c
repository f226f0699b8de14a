/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * step.bpf.c: bpf/unwind/unwind.h in the kernel, on the task that runs it: a whole walk, a bpf_loop
 * of steps, as a sampler does it. What it starts from is handed over as the context.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

#include "bpf/unwind/unwind.h"
#include "tests/unit/bpf/unwind/step_testing.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, STEP_MODULES);
	__type(key, __u32);
	__type(value, struct step_module);
} modules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct step_walk);
} walks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_frame);
} frames SEC(".maps");

/* The module that holds `pc`; most frames lie in the one met last. */
static __always_inline struct step_module *find_module(struct step_walk *w, __u64 pc)
{
	for (__u32 i = 0; i < STEP_MODULES; i++) {
		__u32 index = (w->last + i) & (STEP_MODULES - 1);
		struct step_module *m = bpf_map_lookup_elem(&modules, &index);

		if (m && pc >= m->start && pc < m->end) {
			w->last = index;
			return m;
		}
	}
	return 0;
}

static long one_frame(__u32 i, void *unused)
{
	__u32 zero = 0;
	struct step_walk *w = bpf_map_lookup_elem(&walks, &zero);
	struct unwind_frame *f = bpf_map_lookup_elem(&frames, &zero);
	struct step_module *m;

	if (!w || !f || i >= STEP_FRAMES)
		return 1;
	w->pcs[i] = f->pc;
	w->count = i + 1;
	m = find_module(w, f->pc);
	w->end = m ? unwind_step(f, &m->place, m->base) : UNWIND_END_NO_MAPPING;
	return w->end != UNWIND_END_NONE;
}

SEC("raw_tp")
int step_walk(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 zero = 0;
	struct step_walk *w = bpf_map_lookup_elem(&walks, &zero);
	struct unwind_frame *f = bpf_map_lookup_elem(&frames, &zero);

	if (!w || !f)
		return 0;
	*f = (struct unwind_frame){
		.pc = ctx->args[0],
		.sp = ctx->args[1],
		.fp = ctx->args[2],
		.exact = 1,
		.bounds = { .main = ctx->args[3],
			    .alternate = ctx->args[4],
			    .alternate_bytes = ctx->args[5] },
	};
	unwind_begin(f);
	w->end = UNWIND_END_NONE;
	bpf_loop(STEP_FRAMES, one_frame, 0, 0);
	if (w->end == UNWIND_END_NONE)
		w->end = UNWIND_END_DEPTH;
	return 0;
}
