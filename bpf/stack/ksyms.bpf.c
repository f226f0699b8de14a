// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ksyms.bpf.c: lists the text symbols of the kernel and its modules, and the address ranges and
 * load times of BPF programs, for an unprivileged reader.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel.h"
#include "bpf/maps/map_macros.h"
#include "shared/abi/abi.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define KSYM_NAME_BYTES	  512 /* KSYM_NAME_LEN */
#define KSYM_MODULE_BYTES 56  /* MODULE_NAME_LEN on 64-bit kernels */
#define RECORD_ALIGN	  8
#define BPF_FUNCTIONS_MAX 256 /* BPF_MAX_SUBPROGS */

/* Members of a BPF program. Only this file uses them, so they are not in kernel.h. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct bpf_ksym {
	unsigned long start, end;
};

struct bpf_prog_aux {
	__u32 func_cnt; /* of `func`: 0 without subprograms */
	struct bpf_prog **func;
	__u64 load_time; /* CLOCK_BOOTTIME; 0 for subprograms */
	struct bpf_ksym ksym;
};

struct bpf_prog {
	struct bpf_prog_aux *aux;
};

struct bpf_iter__bpf_prog {
	struct bpf_iter_meta *meta;
	struct bpf_prog *prog; /* NULL after the last one */
};

#pragma clang attribute pop

struct ksym_scratch {
	struct ksym_record record;
	char names[KSYM_NAME_BYTES + KSYM_MODULE_BYTES + RECORD_ALIGN];
};

/* One element per reading thread, because iterators are preemptible (iter.bpf.c). */
TASK_MAP(ksym_readers, struct ksym_scratch);

/* Returns true for t, T, w and W of nm(1): text, and weak symbols, which in the kernel are text. */
static __always_inline bool is_text(char type)
{
	type |= 0x20;
	return type == 't' || type == 'w';
}

SEC("iter/ksym")
int ksyms(struct bpf_iter__ksym *ctx)
{
	struct kallsym_iter *ksym = ctx->ksym;
	struct ksym_scratch *s;
	__u64 name, module, bytes;
	long r;

	if (!ksym || !is_text(ksym->type))
		return 0;
	s = map_of_thread(&ksym_readers);
	if (!s)
		return 0;
	r = bpf_probe_read_kernel_str(s->names, KSYM_NAME_BYTES, ksym->name);
	if (r <= 0)
		return 0;
	name = r;
	asm volatile("" : "+r"(name));
	if (name > KSYM_NAME_BYTES)
		return 0;
	r = bpf_probe_read_kernel_str(s->names + name, KSYM_MODULE_BYTES, ksym->module_name);
	if (r <= 0)
		return 0;
	module = r;
	asm volatile("" : "+r"(module));
	if (module > KSYM_MODULE_BYTES)
		return 0;
	__builtin_memset(s->names + name + module, 0, RECORD_ALIGN);
	bytes = (sizeof(s->record) + name + module + RECORD_ALIGN - 1) & ~(RECORD_ALIGN - 1);
	s->record.address = ksym->value;
	s->record.name_bytes = name;
	s->record.module_bytes = module;
	s->record.record_bytes = bytes;
	asm volatile("" : "+r"(bytes));
	if (bytes > sizeof(*s))
		return 0;
	bpf_seq_write(ctx->meta->seq, &s->record, bytes);
	return 0;
}

/* A walk over the subprograms of a program. They are programs too, with their own symbols. */
struct code_walk {
	struct seq_file *seq;
	struct bpf_prog **functions;
	struct bpf_code_record record;
};

/* Writes the address range of a program or subprogram. */
static __always_inline void put_code(struct code_walk *w, const struct bpf_prog_aux *aux)
{
	struct bpf_code_record *record = &w->record;

	if (bpf_probe_read_kernel(&record->start, sizeof(record->start), &aux->ksym.start) ||
	    bpf_probe_read_kernel(&record->end, sizeof(record->end), &aux->ksym.end) ||
	    record->start >= record->end)
		return;
	bpf_seq_write(w->seq, record, sizeof(*record));
}

static long put_function(__u32 i, struct code_walk *w)
{
	struct bpf_prog *function;
	struct bpf_prog_aux *aux;

	if (bpf_probe_read_kernel(&function, sizeof(function), w->functions + i) ||
	    bpf_probe_read_kernel(&aux, sizeof(aux), &function->aux))
		return 1;
	put_code(w, aux);
	return 0;
}

/* The records of one program fit the buffer of one read (32 KiB). */
SEC("iter/bpf_prog")
int bpf_code(struct bpf_iter__bpf_prog *ctx)
{
	struct bpf_prog *prog = ctx->prog;
	struct bpf_prog_aux *aux;
	struct code_walk w;
	__u32 count;

	if (!prog)
		return 0;
	aux = prog->aux;
	count = aux->func_cnt;
	w = (struct code_walk){ ctx->meta->seq, aux->func, { .load_ns = aux->load_time } };
	put_code(&w, aux);
	bpf_loop(count < BPF_FUNCTIONS_MAX ? count : BPF_FUNCTIONS_MAX, put_function, &w, 0);
	return 0;
}
