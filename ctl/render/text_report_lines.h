/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_lines.h: reads the lines of a session. */
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

#endif
