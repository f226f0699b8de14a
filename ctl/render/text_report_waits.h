/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_waits.h: the part of the text report about threads that waited. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_WAITS_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_WAITS_H

#include <stdio.h>

#include "ctl/events/store.h"

/*
 * Prints where threads waited most, a line for each: for how long, for what, in which function, how
 * many threads; and by how many looks that is known. Nothing where session.end does not say. 0 or
 * -ENOMEM.
 */
int text_report_waits(const struct store *store, const struct store_session *session, FILE *out);

#endif
