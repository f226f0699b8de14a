/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text_report_stalls.h: what stood still, above the sessions of a report: a short stall may begin
 * a session, and a long one then be held back, or stand behind it.
 */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_STALLS_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_STALLS_H

#include <stdio.h>

#include "ctl/events/store.h"

/*
 * Prints for each cgroup and resource of the selected sessions for how long it stalled, in them and
 * held back, the longest first. Nothing where there is only one session. 0 or -ENOMEM.
 */
int text_report_stalls(const struct store *store, FILE *out);

#endif
