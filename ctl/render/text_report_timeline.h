/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_timeline.h: the part of the text report about the threads' activity over time. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_TIMELINE_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_TIMELINE_H

#include <stdio.h>

#include "ctl/events/store.h"

/*
 * Prints for each pool that did something a strip for each part of its time, as high as the part of
 * its threads that did it, over the time before the trigger and the session. 0 or -ENOMEM.
 */
int text_report_timeline(const struct store *store, const struct store_session *session, FILE *out);

#endif
