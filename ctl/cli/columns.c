/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/cli/columns.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/cli/member_text.h"

void columns_begin(struct text_table *table, const struct column *columns, unsigned int n)
{
	text_table_init(table, n);
	table->headless = !columns->head;
	for (unsigned int i = 0; i < table->columns; i++) {
		table->spare |= columns[i].flags & COLUMN_SPARE ? 1u << i : 0;
		table->rigid |= columns[i].flags & COLUMN_RIGID ? 1u << i : 0;
		table->ends |= columns[i].flags & COLUMN_ENDS ? 1u << i : 0;
		table->zeros |= columns[i].flags & COLUMN_ZEROS ? 1u << i : 0;
		if (columns[i].head)
			text_table_add(table, strdup(columns[i].head));
	}
}

/* The caller frees it. NULL: no memory. */
static char *make_cell(const struct column *column, const struct json_node *object)
{
	bool rest = column->rest && json_node_get(object, "others");
	char *cell = NULL;
	size_t bytes;
	FILE *out = open_memstream(&cell, &bytes);

	if (!out)
		return NULL;
	if (column->put)
		column->put(object, out);
	else
		member_text_put(rest ? column->rest : column->cell, object, out);
	if (fclose(out) == 0)
		return cell;
	free(cell);
	return NULL;
}

void columns_add(struct text_table *table, const struct column *columns,
		 const struct json_node *object)
{
	for (unsigned int i = 0; i < table->columns; i++)
		text_table_add(table, make_cell(&columns[i], object));
}
