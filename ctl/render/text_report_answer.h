/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_answer.h: how sure the answer of a session is; its section is in sections.h. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_ANSWER_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_ANSWER_H

#include <stdio.h>

#include "shared/json/json_node.h"

/*
 * Prints `before` and a line on the answer of `end`, a session.end: its level, how much it
 * explains, and the baseline. Prints nothing without an answer, as in lines of older agents.
 */
void text_report_answer_put(const struct json_node *end, const char *before, FILE *out);

#endif
