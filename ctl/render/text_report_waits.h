/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_waits.h: the part of the text report about threads that waited. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_WAITS_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_WAITS_H

#include <stdio.h>

#include "ctl/events/store.h"
#include "shared/json/json_node.h"

/*
 * Prints the places where threads waited most, a line for each: the time, the kind, the function,
 * the number of threads; and the number of sampling passes. Prints nothing if session.end does not
 * have them. 0 or -ENOMEM.
 */
int text_report_waits(const struct store *store, const struct store_session *session, FILE *out);

/*
 * Returns a new text of the object of a wait, a member `on`: "file journal", "answers of the unix
 * socket /run/pg.sock", "" if the object is not known; NULL: no memory.
 */
char *text_report_waits_object(const struct json_node *on);

#endif
