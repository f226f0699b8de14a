/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel_cast.h: bpf_rdonly_cast, and the definition of kernel_word for the other objects. When
 * objects are linked together, include it in only one of them: bpftool 7.1 accepts a kernel
 * function in one object only.
 */
#ifndef TROCAR_BPF_KERNEL_KERNEL_CAST_H
#define TROCAR_BPF_KERNEL_KERNEL_CAST_H

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel.h"
#include "bpf/kernel/kernel_word.h"

/* Makes the object readable as the struct with BTF id `type`. */
extern void *bpf_rdonly_cast(const void *object, __u32 type) __weak __ksym;

/*
 * The kernel's BTF ids of the structs for KERNEL_CAST. The loader sets them, because libbpf
 * relocates against a copy of the kernel's types, which have other ids there
 * (loader/kernel_types.h). 0: libbpf's id is the kernel's.
 */
const volatile __u32 cast_task_struct = 0, cast_timespec64 = 0, cast_pt_regs = 0, cast_file = 0,
		     cast_list_head = 0;

/* Reads the object as a `struct type`. Requires a kernel with bpf_rdonly_cast. */
#define KERNEL_CAST(object, type)                                       \
	((const struct type *)bpf_rdonly_cast((const void *)(object),   \
					      cast_##type ? cast_##type \
							  : bpf_core_type_id_kernel(struct type)))

/*
 * Returns the task as an untrusted pointer. A read through it is a plain load that cannot fault,
 * and the verifier does not search for the types of pointers (task_keys.h).
 */
static __always_inline struct task_struct *kernel_cast_task(struct task_struct *task)
{
	if (!has_cast)
		return task;
	return (struct task_struct *)KERNEL_CAST(task, task_struct);
}

/* Reads the word as the first member of a struct that begins with a 64-bit member. */
__noinline __u64 kernel_word(__u64 at)
{
	return has_cast ? KERNEL_CAST(at, timespec64)->tv_sec : 0;
}

#endif
