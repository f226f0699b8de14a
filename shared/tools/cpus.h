/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cpus.h: reads lists of CPUs in the form of sysfs: "0-3,8". Source:
 * Documentation/admin-guide/cputopology.rst
 */
#ifndef TROCAR_SHARED_TOOLS_CPUS_H
#define TROCAR_SHARED_TOOLS_CPUS_H

#include <stddef.h>
#include <stdint.h>

#define CPUS_MAX 8192 /* NR_CPUS of the largest kernels */

/*
 * Parses `text` ("0-3,8\n") into the numbers in it, ascending; the caller frees *ret_cpus. 0;
 * -EINVAL: not such a list, or not ascending; -ERANGE: a number of CPUS_MAX or more.
 */
int cpus_parse(const char *text, uint32_t **ret_cpus, size_t *ret_count);

/* Lists the CPUs that are online now, without offline CPUs. */
int cpus_online(uint32_t **ret_cpus, size_t *ret_count);

/* Counts the possible CPUs: the number of values of an element of a per-CPU map. */
int cpus_possible(uint32_t *ret_count);

#endif
