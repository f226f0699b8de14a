/* SPDX-License-Identifier: BSD-2-Clause */
/* process_names.h: the present names of processes, for a user that wrote another one. */
#ifndef TROCAR_CTL_CLIENT_PROCESS_NAMES_H
#define TROCAR_CTL_CLIENT_PROCESS_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROCESS_NAMES_MAX 4096 /* different ones; further ones are not looked at */

struct process_names {
	char (*items)[16]; /* owned; each once */
	size_t count;
};

/*
 * Reads /proc as far as the caller may. What cannot be read is left out, because nothing but advice
 * depends on it. -ENOMEM, -errno of opendir(3).
 */
int process_names_read(struct process_names *ret_names);
void process_names_done(struct process_names *names);

/*
 * The lowest number of a process that has this name, cut as the kernel cuts it, and how many there
 * are. 0: none, or /proc cannot be read.
 */
uint64_t process_names_number(const char *name, unsigned int *ret_count);

/* Whether a process has this name, or with `prefix` one that begins so. */
bool process_names_has(const struct process_names *names, const char *comm, bool prefix);

/* The name that was meant by `comm` (similar.h), which no process has; NULL: none is near. */
const char *process_names_near(const struct process_names *names, const char *comm);

#endif
