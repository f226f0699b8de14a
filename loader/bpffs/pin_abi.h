/* SPDX-License-Identifier: BSD-2-Clause */
/* pin_abi.h: the header of a loaded set, in its pin `abi`. */
#ifndef TROCAR_LOADER_BPFFS_PIN_ABI_H
#define TROCAR_LOADER_BPFFS_PIN_ABI_H

#include "shared/abi/abi.h"

/*
 * Reads the header of the set that is pinned in `dir`. -ENOENT: no set is pinned; -EPROTO: the
 * header has another size, so another version pinned it; else the error of bpf(2). Needs CAP_BPF
 * before Linux 6.1.
 */
int pin_abi_read(const char *dir, struct abi_header *ret_header);

#endif
