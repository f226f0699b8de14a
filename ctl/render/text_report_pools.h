/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_pools.h: the part of the text report about the time of pools of threads by state. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_POOLS_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_POOLS_H

#include <stdio.h>

#include "ctl/events/store.h"

/*
 * Prints a bar for each pool of threads: running, queue, and each kind of wait, pools with the most
 * time first. Prints nothing if the session has no time accounts. 0 or -ENOMEM.
 */
int text_report_pools(const struct store *store, const struct store_session *session, FILE *out);

#endif
