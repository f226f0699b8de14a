/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * facts_files.h: counts the open descriptors of a cgroup's processes against their limit,
 * RLIMIT_NOFILE (getrlimit(2)), without a privilege: /proc/PID/limits and, from Linux 6.2 on, the
 * size of /proc/PID/fd (proc_fd_getattr in fs/proc/fd.c). Main thread only.
 */
#ifndef TROCAR_CONSUMER_FACTS_FACTS_FILES_H
#define TROCAR_CONSUMER_FACTS_FACTS_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/facts/facts.h"

#define FACTS_FILES_LEAST 32 /* a smaller limit is a sandbox */

/*
 * Finds the soft limit of descriptors in `text`, the content of /proc/PID/limits. Returns false if
 * there is none. Fuzzed (tests/fuzz/consumer/facts.c).
 */
bool facts_files_parse(const char *text, size_t bytes, uint64_t *ret_max);

/*
 * Sets FACT_FILES_PID, FACT_FILES_OPEN, FACT_FILES_MAX and files_comm of *f to those of the process
 * that is nearest to its limit, of the first FACTS_PLACE_PIDS in `pids`, the content of
 * cgroup.procs, and FACT_FILES_UNASKED to the number of further ones. Passes over processes that
 * took the descriptors from themselves, as sandboxes do: a limit below FACTS_FILES_LEAST. One that
 * inherited descriptors above its limit may have more open than that. Sets nothing where the kernel
 * does not count.
 */
void facts_files_read(const char *pids, size_t bytes, struct facts *f);

#endif
