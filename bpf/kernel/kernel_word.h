/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel_word.h: reads kernel memory at an address that the verifier knows as a number only. Where
 * the kernel has bpf_rdonly_cast such a read is a plain load; a helper that reads takes longer than
 * all else around it.
 */
#ifndef TROCAR_BPF_KERNEL_KERNEL_WORD_H
#define TROCAR_BPF_KERNEL_KERNEL_WORD_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

/* The kernel has bpf_rdonly_cast (6.2), as the loader takes it from 6.7 on: loader/kernelset.c. */
const volatile bool has_cast __weak = false;

/*
 * Returns the word at `at`; 0 where nothing is. Call it with has_cast only. Defined in
 * kernel_cast.h.
 */
__u64 kernel_word(__u64 at);

#endif
