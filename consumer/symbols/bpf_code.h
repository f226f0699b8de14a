/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf_code.h: the address ranges and load times of the compiled code of BPF programs, as the
 * iterator `bpf_code` writes them. It adds the end of each program to the data of `ksyms`. Classic
 * BPF filters of seccomp(2) and sockets are in neither. Symbolizer thread only.
 */
#ifndef TROCAR_CONSUMER_SYMBOLS_BPF_CODE_H
#define TROCAR_CONSUMER_SYMBOLS_BPF_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "shared/abi/abi.h"

#define BPF_CODE_MAX 1000000u /* programs and functions */

struct bpf_code {
	struct bpf_code_record *items; /* owned; sorted by start; load_ns in CLOCK_MONOTONIC */
	size_t count, space;
};

/*
 * Reads the iterator (or a file of such records) at `path`. Returns 0; -EBADMSG (a range that ends
 * before it begins); -EFBIG (BPF_CODE_MAX); -ENOMEM; -errno of open(2) and read(2). Release with
 * bpf_code_done.
 */
int bpf_code_read(const char *path, struct bpf_code *ret_code);
void bpf_code_done(struct bpf_code *c);

/* Returns the code that contains `address`, or NULL. */
const struct bpf_code_record *bpf_code_find(const struct bpf_code *c, uint64_t address);

#endif
