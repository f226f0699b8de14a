/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_timeline.h: the part of the text report about the threads' activity over time. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_TIMELINE_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_TIMELINE_H

#include <stdio.h>

#include "ctl/events/store.h"

/*
 * Prints strips for each pool that was not idle, one for each part of its time, over the time
 * before the trigger and the session. The height of a strip is the share of the pool's threads in
 * that part. 0 or -ENOMEM.
 */
int text_report_timeline(const struct store *store, const struct store_session *session, FILE *out);

#endif
