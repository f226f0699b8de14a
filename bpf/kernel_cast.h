/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel_cast.h: bpf_rdonly_cast, and kernel_word for the programs of other objects. Include it in
 * one object of those that are linked together: bpftool 7.1 takes a function of the kernel's from
 * one only.
 */
#ifndef TROCAR_BPF_KERNEL_CAST_H
#define TROCAR_BPF_KERNEL_CAST_H

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel.h"
#include "bpf/kernel_word.h"

/* Makes what `object` points to readable as the struct of this BTF number. */
extern void *bpf_rdonly_cast(const void *object, __u32 type) __weak __ksym;

/* It reads the word as the first member of a struct that begins with one. */
__noinline __u64 kernel_word(__u64 at)
{
	const struct timespec64 *cast;

	if (!has_cast)
		return 0;
	cast = bpf_rdonly_cast((const void *)at, bpf_core_type_id_kernel(struct timespec64));
	return cast->tv_sec;
}

#endif
