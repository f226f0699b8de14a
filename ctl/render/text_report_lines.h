/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_lines.h: the parts of the text report about a session's own lines. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_LINES_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_LINES_H

#include <stdio.h>

#include "ctl/events/store.h"
#include "shared/json/json_tree.h"

/*
 * Parses a kept line of a session, which the reader of the file has accepted. Returns its root;
 * NULL: no line (STORE_NONE), or no memory. Release the tree with json_tree_done.
 */
const struct json_node *text_report_lines_read(const struct store *store, uint32_t line,
					       struct json_tree *ret_tree);

/* Prints the pressure around the session. 0 or -ENOMEM. */
int text_report_lines_pressure(const struct store *store, const struct store_session *session,
			       FILE *out);

/* Prints the attempted, emitted and lost counts, by signal. 0 or -ENOMEM. */
int text_report_lines_ledger(const struct store *store, const struct store_session *session,
			     FILE *out);

#endif
