/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_neighbours.h: the part of the text report about the users of the CPUs. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_NEIGHBOURS_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_NEIGHBOURS_H

#include <stdio.h>

#include "ctl/events/store.h"

/*
 * Prints one line: the cgroups with the most CPU time while the session ran, the session's own
 * time, and the idle time, each in CPUs. Prints nothing if session.end does not have them. 0 or
 * -ENOMEM.
 */
int text_report_neighbours(const struct store *store, const struct store_session *session,
			   FILE *out);

#endif
