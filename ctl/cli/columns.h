/* SPDX-License-Identifier: BSD-2-Clause */
/* columns.h: tables with a row for each of several JSON objects. */
#ifndef TROCAR_CTL_CLI_COLUMNS_H
#define TROCAR_CTL_CLI_COLUMNS_H

#include "ctl/cli/text.h"
#include "shared/json/json_node.h"

/* Flags of a column; the first three are those of struct text_table. */
#define COLUMN_SPARE 1u
#define COLUMN_RIGID 2u
#define COLUMN_ENDS  4u
#define COLUMN_ZEROS 8u /* omitted if all its cells are "0" */

struct column {
	const char *head; /* NULL in all columns: the table has no heads */
	const char *cell; /* a form of member_text.h */
	const char *rest; /* the form for an object with the member `others`; NULL: `cell` */
	void (*put)(const struct json_node *object, FILE *out); /* instead of both; NULL: none */
	unsigned int flags;
};

/* Begins a table of `n` columns, with their heads. Release it with text_table_done. */
void columns_begin(struct text_table *table, const struct column *columns, unsigned int n);

/* Adds the row of an object to a table begun with these columns. */
void columns_add(struct text_table *table, const struct column *columns,
		 const struct json_node *object);

#endif
