/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_queue.h: the part of the text report about waits for a CPU. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_QUEUE_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_QUEUE_H

#include <stdio.h>

#include "ctl/events/store.h"

/*
 * Prints the lengths of waits for a CPU as bars, the cgroups that used the CPU in the meantime, and
 * the longest waits. Prints nothing if the session has no histogram. 0 or -ENOMEM.
 */
int text_report_queue(const struct store *store, const struct store_session *session, FILE *out);

#endif
