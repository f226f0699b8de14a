/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_disks.h: the part of the text report about disk requests. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_DISKS_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_DISKS_H

#include <stdio.h>

#include "ctl/events/store.h"

/*
 * Prints the requests by disk and operation, and the other users of these disks. Prints nothing if
 * the session has no such requests. 0 or -ENOMEM.
 */
int text_report_disks(const struct store *store, const struct store_session *session, FILE *out);

#endif
