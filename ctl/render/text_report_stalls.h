/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text_report_stalls.h: the table of stalls above the sessions of a report: a short stall may begin
 * a session, and a long stall may then be held back, or come later in the report.
 */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_STALLS_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_STALLS_H

#include <stdio.h>

#include "ctl/events/store.h"

/*
 * Prints the stalled time of each cgroup and resource of the selected sessions, in sessions and in
 * held-back triggers, the longest first. Prints nothing if there is only one session. 0 or -ENOMEM.
 */
int text_report_stalls(const struct store *store, FILE *out);

#endif
