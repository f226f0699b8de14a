/* SPDX-License-Identifier: BSD-2-Clause */
/* pin_abi.h: the header of a loaded set, in its pin `abi`. */
#ifndef TROCAR_LOADER_PIN_ABI_H
#define TROCAR_LOADER_PIN_ABI_H

#include "shared/abi.h"

/*
 * Reads the header of the set that stands in `dir`. -ENOENT: none; -EPROTO: its header has another
 * size, so it is another version's; else what bpf(2) says. Needs CAP_BPF before Linux 6.1.
 */
int pin_abi_read(const char *dir, struct abi_header *ret_header);

#endif
