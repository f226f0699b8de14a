/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel_word.h: reads kernel memory at an address that the verifier knows only as a number. If the
 * kernel has bpf_rdonly_cast, such a read is a plain load. A helper call would take longer than all
 * the code around it.
 */
#ifndef TROCAR_BPF_KERNEL_KERNEL_WORD_H
#define TROCAR_BPF_KERNEL_KERNEL_WORD_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

/*
 * Whether the kernel has bpf_rdonly_cast (6.2). The loader uses it from 6.7 on
 * (loader/kernelset.c).
 */
const volatile bool has_cast __weak = false;

/*
 * Returns the word at address `at`; 0 if the address is not mapped. Call it only if has_cast is
 * set. Defined in kernel_cast.h.
 */
__u64 kernel_word(__u64 at);

#endif
