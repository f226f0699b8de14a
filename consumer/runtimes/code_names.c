/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/runtimes/code_names.h"

#include <stdlib.h>
#include <string.h>

#include "consumer/runtimes/python_lines.h"
#include "shared/tools/macro.h"
#include "shared/tools/utf8.h"

#define CHARACTER_BYTES 3 /* of UTF-8, for one of 2 bytes; one of 4 bytes takes as many */
#define CUT_MARK	"..."

struct code_name {
	struct code_name *next; /* newer; or dead */
	uint32_t number;
	uint32_t version;
	int32_t first_line;
	uint32_t table_bytes;
	bool table_cut;
	size_t bytes; /* of this struct with its texts */
	size_t file;  /* offset of the file in `data`; the name is at 0 */
	size_t table; /* offset of the line table */
	char data[];
};

void code_names_init(struct code_names *n)
{
	*n = (struct code_names){ 0 };
	pthread_mutex_init(&n->lock, NULL);
	idmap_init(&n->by_number, CODE_NAMES_MAX);
}

static void free_list(struct code_name *name)
{
	struct code_name *next;

	for (; name; name = next) {
		next = name->next;
		free(name);
	}
}

void code_names_done(struct code_names *n)
{
	free_list(n->oldest);
	free_list(n->dead);
	idmap_done(&n->by_number);
	pthread_mutex_destroy(&n->lock);
}

/* A text as the runtime stores it. */
struct stored {
	const uint8_t *at;
	size_t bytes; /* that were copied */
	bool cut;
	uint8_t text; /* enum runtime_text */
};

/* Returns character `i`. */
static uint32_t character_at(const struct stored *s, size_t i)
{
	uint32_t wide;
	uint16_t half;

	if (s->text == RUNTIME_TEXT_UCS4) {
		memcpy(&wide, s->at + 4 * i, sizeof(wide));
		return wide;
	}
	if (s->text != RUNTIME_TEXT_UCS2)
		return s->at[i];
	memcpy(&half, s->at + 2 * i, sizeof(half));
	return half;
}

/* Writes the text as UTF-8 with a NUL; returns the bytes. A code that is no character becomes
 * U+FFFD. */
static size_t write_text(const struct stored *s, char *to)
{
	size_t unit = s->text > 1 ? s->text : 1, used = 0;

	for (size_t i = 0; i < s->bytes / unit; i++) {
		uint32_t code = character_at(s, i);

		if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000) || !code)
			code = 0xfffd;
		used += utf8_write(to + used, code);
	}
	if (s->cut) {
		memcpy(to + used, CUT_MARK, strlen(CUT_MARK));
		used += strlen(CUT_MARK);
	}
	to[used] = '\0';
	return used + 1;
}

static bool is_text(uint8_t text)
{
	return text == RUNTIME_TEXT_ASCII || text == RUNTIME_TEXT_LATIN1 ||
	       text == RUNTIME_TEXT_UCS2 || text == RUNTIME_TEXT_UCS4;
}

/* Makes an entry of a record; NULL if it is malformed, or without memory. */
static struct code_name *make_name(const struct runtime_name *r, size_t bytes)
{
	size_t head = offsetof(struct runtime_name, table), table;
	struct stored name = { r->name, 0, false, r->name_text };
	struct stored file = { r->file, 0, false, r->file_text };
	struct code_name *made, *fit;
	size_t at;

	if (bytes < head || !is_text(r->name_text) || !is_text(r->file_text) || !r->number)
		return NULL;
	table = MIN((size_t)r->table_bytes, (size_t)RUNTIME_TABLE_BYTES);
	if (bytes - head < table)
		return NULL;
	name.bytes = MIN((size_t)r->name_bytes, sizeof(r->name));
	file.bytes = MIN((size_t)r->file_bytes, sizeof(r->file));
	name.cut = r->name_bytes > name.bytes;
	file.cut = r->file_bytes > file.bytes;
	made = malloc(sizeof(*made) + CHARACTER_BYTES * (name.bytes + file.bytes) +
		      2 * (strlen(CUT_MARK) + 1) + table);
	if (!made)
		return NULL;
	*made = (struct code_name){ .number = r->number,
				    .version = r->version,
				    .first_line = r->first_line,
				    .table_bytes = (uint32_t)table,
				    .table_cut = r->table_bytes > table };
	made->file = write_text(&name, made->data);
	at = made->file + write_text(&file, made->data + made->file);
	made->table = at;
	memcpy(made->data + at, r->table, table);
	made->bytes = sizeof(*made) + at + table;
	fit = realloc(made, made->bytes);
	return fit ? fit : made;
}

/* Evicts the oldest entry. */
static void evict_oldest(struct code_names *n)
{
	struct code_name *name = n->oldest;

	n->oldest = name->next;
	if (!n->oldest)
		n->newest = NULL;
	idmap_remove(&n->by_number, name->number);
	n->stats.count--;
	n->stats.evicted++;
	if (n->held) {
		name->next = n->dead;
		n->dead = name;
		return;
	}
	n->stats.bytes -= name->bytes;
	free(name);
}

static bool has_room(const struct code_names *n, size_t bytes)
{
	return n->stats.count < CODE_NAMES_MAX && n->stats.bytes + bytes <= CODE_NAMES_BYTES_MAX;
}

/* Links the entry. Returns false if there is no space: texts in use take it. */
static bool link_name(struct code_names *n, struct code_name *name)
{
	while (!has_room(n, name->bytes) && n->oldest)
		evict_oldest(n);
	if (!has_room(n, name->bytes) || idmap_get(&n->by_number, name->number) ||
	    idmap_put(&n->by_number, name->number, name) < 0)
		return false;
	name->next = NULL;
	*(n->newest ? &n->newest->next : &n->oldest) = name;
	n->newest = name;
	n->stats.count++;
	n->stats.bytes += name->bytes;
	n->stats.added++;
	return true;
}

void code_names_add(struct code_names *n, const void *record, size_t bytes)
{
	struct code_name *name = make_name(record, bytes);

	pthread_mutex_lock(&n->lock);
	if (!name || !link_name(n, name)) {
		n->stats.refused++;
		free(name);
	}
	pthread_mutex_unlock(&n->lock);
}

bool code_names_find(struct code_names *n, uint64_t word, struct code_place *ret_place)
{
	uint32_t number = RUNTIME_NUMBER(word), at = RUNTIME_INSTRUCTION(word);
	const struct code_name *name = NULL;

	pthread_mutex_lock(&n->lock);
	if (number)
		name = idmap_get(&n->by_number, number);
	n->held = n->held || name;
	pthread_mutex_unlock(&n->lock);
	if (!name)
		return false;
	*ret_place = (struct code_place){ .fn = name->data, .file = name->data + name->file };
	if (at != RUNTIME_INSTRUCTION_MAX) {
		struct python_table table = { (const uint8_t *)name->data + name->table,
					      name->table_bytes, name->table_cut };

		ret_place->line =
			python_lines_find(name->version, &table, name->first_line, (int64_t)at - 2);
	}
	return true;
}

void code_names_trim(struct code_names *n)
{
	pthread_mutex_lock(&n->lock);
	for (const struct code_name *name = n->dead; name; name = name->next)
		n->stats.bytes -= name->bytes;
	free_list(n->dead);
	n->dead = NULL;
	n->held = false;
	pthread_mutex_unlock(&n->lock);
}

void code_names_stats(struct code_names *n, struct code_names_stats *ret_stats)
{
	pthread_mutex_lock(&n->lock);
	*ret_stats = n->stats;
	pthread_mutex_unlock(&n->lock);
}
