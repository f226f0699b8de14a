/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mappings_read.h: reads the executable mappings of one process from the pinned `vmas` iterator.
 * Main thread only.
 */
#ifndef TROCAR_CONSUMER_MAPPINGS_MAPPINGS_READ_H
#define TROCAR_CONSUMER_MAPPINGS_MAPPINGS_READ_H

#include <stdint.h>

#include "consumer/mappings/mappings.h"
#include "shared/abi/abi.h"

/*
 * Reads the mappings of `tgid` (its start time must be start_ns) through the iterator pinned at
 * `vmas_path`; sets control->vma_tgid and vma_from and resets them. Release *ret_mappings with
 * mappings_done. Returns 0; -ESRCH if the process has ended or another has its pid; -EACCES if the
 * kernel side does not list it; -ESTALE if it got another image during the reading; -EOVERFLOW
 * beyond MAPPINGS_MAX, MAPPINGS_ROUNDS_MAX or SYMBOLS_MODULES_MAX (*ret_mappings then has those
 * that fitted, also for the caller to release); -EBADMSG for invalid records; -ENOMEM; -errno of
 * open(2) and read(2).
 */
int mappings_read(const char *vmas_path, struct control *control, uint32_t tgid, uint64_t start_ns,
		  struct symbols *symbols, struct mappings *ret_mappings);

#endif
