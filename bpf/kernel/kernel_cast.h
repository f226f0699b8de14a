/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel_cast.h: bpf_rdonly_cast, and kernel_word for the programs of other objects. Include it in
 * one object of those that are linked together: bpftool 7.1 takes a function of the kernel's from
 * one only.
 */
#ifndef TROCAR_BPF_KERNEL_KERNEL_CAST_H
#define TROCAR_BPF_KERNEL_KERNEL_CAST_H

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel.h"
#include "bpf/kernel/kernel_word.h"

/* Makes the object readable as the struct of this BTF number. */
extern void *bpf_rdonly_cast(const void *object, __u32 type) __weak __ksym;

/*
 * The kernel's numbers of the structs that objects are read as. The loader sets them, because it
 * has libbpf relocate by a copy of the kernel's types, which have other numbers there
 * (loader/kernel_types.h); 0: libbpf's number is the kernel's.
 */
const volatile __u32 cast_task_struct = 0, cast_timespec64 = 0, cast_pt_regs = 0, cast_file = 0,
		     cast_list_head = 0;

/* Reads the object as a `struct type`. The kernel has bpf_rdonly_cast. */
#define KERNEL_CAST(object, type)                                       \
	((const struct type *)bpf_rdonly_cast((const void *)(object),   \
					      cast_##type ? cast_##type \
							  : bpf_core_type_id_kernel(struct type)))

/*
 * Returns the task as a pointer that the verifier does not trust. What is read from it is a plain
 * load that cannot fault, and costs the verifier no search for the types of pointers (task_keys.h).
 */
static __always_inline struct task_struct *kernel_cast_task(struct task_struct *task)
{
	if (!has_cast)
		return task;
	return (struct task_struct *)KERNEL_CAST(task, task_struct);
}

/* It reads the word as the first member of a struct that begins with one. */
__noinline __u64 kernel_word(__u64 at)
{
	return has_cast ? KERNEL_CAST(at, timespec64)->tv_sec : 0;
}

#endif
