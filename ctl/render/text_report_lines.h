/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_lines.h: the parts of the text report that come from a session's own lines. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_LINES_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_LINES_H

#include <stdio.h>

#include "ctl/events/store.h"

/* Prints the pressure around the session. 0 or -ENOMEM. */
int text_report_lines_pressure(const struct store *store, const struct store_session *session,
			       FILE *out);

/* Prints what was sampled and lost. 0 or -ENOMEM. */
int text_report_lines_account(const struct store *store, const struct store_session *session,
			      FILE *out);

#endif
