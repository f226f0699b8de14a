/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_reclaim.h: the part of the text report about direct reclaim and dirty throttling. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_RECLAIM_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_RECLAIM_H

#include <stdio.h>

#include "ctl/events/store.h"

/*
 * Prints direct reclaim and dirty throttling, of the session's threads and of other cgroups. Prints
 * nothing if the session has no such times. 0 or -ENOMEM.
 */
int text_report_reclaim(const struct store *store, const struct store_session *session, FILE *out);

#endif
