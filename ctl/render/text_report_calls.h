/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text_report_calls.h: the part of the text report about the system calls in which threads waited
 * or ran.
 */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_CALLS_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_CALLS_H

#include <stdio.h>

#include "ctl/events/store.h"

/*
 * Prints a table of the system calls with the most time, and where else the session's threads ran.
 * Prints nothing if the session has no lines `syscall`. 0 or -ENOMEM.
 */
int text_report_calls(const struct store *store, const struct store_session *session, FILE *out);

#endif
