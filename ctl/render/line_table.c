/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/line_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "shared/tools/macro.h"

uint64_t line_table_read(const struct json_node *line, const char *key)
{
	return json_node_u64(json_node_get(line, key));
}

void line_table_number(struct text_table *table, uint64_t number)
{
	char *text = NULL;

	text_table_add(table, asprintf(&text, "%" PRIu64, number) < 0 ? NULL : text);
}

void line_table_time(struct text_table *table, uint64_t ns)
{
	char text[TEXT_UNIT_BYTES];

	text_table_add(table, strdup(text_duration_us(ns / NSEC_PER_USEC, text)));
}

void line_table_bound(struct text_table *table, const struct json_node *part, const char *key)
{
	uint64_t ns = line_table_read(part, key);

	if (!part)
		text_table_add(table, strdup(""));
	else if (!ns)
		text_table_add(table, strdup("longer"));
	else
		line_table_time(table, ns);
}
