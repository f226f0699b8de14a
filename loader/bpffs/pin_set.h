/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pin_set.h: the pins in the bpf directory. The loader pins a new set in the subdirectory "new" and
 * then exchanges it with the old one. It moves the old `abi` away first and puts the new one in
 * place last, so a consumer that finds `abi` finds a whole set.
 */
#ifndef TROCAR_LOADER_BPFFS_PIN_SET_H
#define TROCAR_LOADER_BPFFS_PIN_SET_H

#include <stdbool.h>
#include <sys/types.h>

#include "shared/abi/abi.h"

#define PIN_SET_NEW "new" /* bpffs allows no dot in a name */

/* Makes `dir`/new, empty, for root alone. 0 or -errno. */
int pin_set_stage(const char *dir);

/* Pins descriptor `fd` as `dir`/new/`name` with that mode and group. 0 or -errno. */
int pin_set_put(const char *dir, const char *name, int fd, mode_t mode, gid_t gid);

/*
 * Exchanges the staged set with the old one, if any, and removes the old one. On failure the old
 * set is in place as before and the new one is still staged. 0 or -errno.
 */
int pin_set_commit(const char *dir);

/*
 * Removes the staged set, if any. *ret_removed (may be NULL) is the number of pins removed.
 * Continues after an error; returns the first one.
 */
int pin_set_unstage(const char *dir, unsigned int *ret_removed);

/* Removes the pins of the set in `dir`, and no other file. Results as pin_set_unstage. */
int pin_set_remove(const char *dir, unsigned int *ret_removed);

/* Returns whether the bpffs `dir` holds nothing but the kernel's own files of each bpffs. */
bool pin_set_is_empty(const char *dir);

/*
 * Reads the header of the set that is pinned in `dir`, its pin `abi`. -ENOENT: no set is pinned;
 * -EPROTO: the header has another size, so another version pinned it; else the error of bpf(2).
 * Needs CAP_BPF before Linux 6.1.
 */
int pin_set_abi(const char *dir, struct abi_header *ret_header);

#endif
