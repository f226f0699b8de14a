/* SPDX-License-Identifier: BSD-2-Clause */
/* line_table.h: makes cells of the text report's tables from members of event lines. */
#ifndef TROCAR_CTL_RENDER_LINE_TABLE_H
#define TROCAR_CTL_RENDER_LINE_TABLE_H

#include <stdint.h>

#include "ctl/cli/text.h"
#include "shared/json/json_tree.h"

/* Returns the number of a member; 0 if the line lacks it, or is NULL. */
uint64_t line_table_read(const struct json_node *line, const char *key);

/* Add a cell with a number, or with a time: "4.2 ms". Without memory the table fails. */
void line_table_number(struct text_table *table, uint64_t number);
void line_table_time(struct text_table *table, uint64_t ns);

/*
 * Adds a bound of a histogram: the last element has no bound, and the cell is "longer". Without a
 * histogram (`part` is NULL) the cell is empty.
 */
void line_table_bound(struct text_table *table, const struct json_node *part, const char *key);

#endif
