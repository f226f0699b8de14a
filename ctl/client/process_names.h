/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process_names.h: the names of running processes, for a message to a user that gave a name that no
 * process has.
 */
#ifndef TROCAR_CTL_CLIENT_PROCESS_NAMES_H
#define TROCAR_CTL_CLIENT_PROCESS_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROCESS_NAMES_MAX 4096 /* different names; further names are ignored */

struct process_names {
	char (*items)[16]; /* owned; each name once */
	size_t count;
};

/*
 * Reads /proc as far as the caller is allowed to. Skips unreadable processes, because only advice
 * depends on the result. -ENOMEM, -errno of opendir(3).
 */
int process_names_read(struct process_names *ret_names);
void process_names_done(struct process_names *names);

/*
 * Returns the lowest pid of a process that has this name, cut as the kernel cuts it; *ret_count is
 * the number of such processes. 0: none, or /proc cannot be read.
 */
uint64_t process_names_number(const char *name, unsigned int *ret_count);

/* Returns whether a process has this name, or with `prefix` a name that begins with it. */
bool process_names_has(const struct process_names *names, const char *comm, bool prefix);

/*
 * Returns the name that the user probably meant by `comm` (similar.h), which no process has; NULL:
 * no name is similar.
 */
const char *process_names_near(const struct process_names *names, const char *comm);

#endif
