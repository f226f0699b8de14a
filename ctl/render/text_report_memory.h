/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_memory.h: the part of the text report about OOM kills and memory stalls. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_MEMORY_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_MEMORY_H

#include <stdio.h>

#include "ctl/events/store.h"

/*
 * Prints the processes that were killed because memory ran out, and the share of CPU time that was
 * memory stall. Prints nothing without such lines. 0 or -ENOMEM.
 */
int text_report_memory(const struct store *store, const struct store_session *session, FILE *out);

#endif
