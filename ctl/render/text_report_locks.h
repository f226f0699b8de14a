/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_locks.h: the part of the text report about the locks that threads waited for. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_LOCKS_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_LOCKS_H

#include <stdio.h>

#include "ctl/events/store.h"

/*
 * Prints the locks with the most waits, and their holders. Prints nothing if the session has no
 * locks. 0 or -ENOMEM.
 */
int text_report_locks(const struct store *store, const struct store_session *session, FILE *out);

#endif
