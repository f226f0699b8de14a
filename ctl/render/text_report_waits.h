/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_waits.h: names the objects that threads wait for. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_WAITS_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_WAITS_H

#include <stdio.h>

#include "ctl/render/session_lines.h"
#include "shared/json/json_node.h"

/*
 * Prints the object of a wait (key `on`): "socket to 10.0.0.7:5432", "answers of 10.0.0.7:5432",
 * "unix socket /run/db.sock", "file data.db", "2 unix, 1 timerfd"; after `before`. Prints nothing
 * if there is none, or it is not known.
 */
void text_report_waits_object(const struct json_node *on, const char *before, FILE *out);

/* Prints the section of waits without the threads that wait for work. */
void text_report_waits_blocked(struct session_lines *s);

#endif
