/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_queue.h: the part of the text report about waits for a CPU. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_QUEUE_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_QUEUE_H

#include <stdio.h>

#include "ctl/events/store.h"

/*
 * Prints how long threads waited for a CPU with a bar by length, the cgroups that had it in the
 * meantime, and the longest waits. Nothing where the session has no histogram. 0 or -ENOMEM.
 */
int text_report_queue(const struct store *store, const struct store_session *session, FILE *out);

#endif
