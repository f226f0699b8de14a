/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pin_set.h: what stands in the bpf directory. A new set is pinned in the subdirectory "new" first
 * and then takes its place in one go; `abi` leaves first and comes last, so that whoever finds it
 * finds a whole set behind it.
 */
#ifndef TROCAR_LOADER_PIN_SET_H
#define TROCAR_LOADER_PIN_SET_H

#include <stdbool.h>
#include <sys/types.h>

#define PIN_SET_NEW "new" /* bpffs allows no dot in a name */

/* Makes `dir`/new, empty, for root alone. 0 or -errno. */
int pin_set_stage(const char *dir);

/* Pins descriptor `fd` as `dir`/new/`name` with that mode and group. 0 or -errno. */
int pin_set_put(const char *dir, const char *name, int fd, mode_t mode, gid_t gid);

/*
 * Puts the staged set in the place of the old one, if there is one, and removes that. On failure
 * the old set stands as before and the new one is still staged. 0 or -errno.
 */
int pin_set_commit(const char *dir);

/* Removes the staged set, if any. *ret_removed (may be NULL) counts. First error, after trying all.
 */
int pin_set_unstage(const char *dir, unsigned int *ret_removed);

/* Removes the set that stands in `dir`, and nothing that is not ours. As pin_set_unstage. */
int pin_set_remove(const char *dir, unsigned int *ret_removed);

/* Is nothing in the bpffs `dir` but what the kernel itself put there? */
bool pin_set_is_empty(const char *dir);

#endif
