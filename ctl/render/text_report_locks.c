/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report_locks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/text.h"
#include "ctl/render/line_table.h"
#include "ctl/render/section.h"
#include "ctl/render/text_report_lines.h"
#include "ctl/view/labels.h"
#include "shared/json/json_tree.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define LOCKS_TOP 10

/* Returns "+0x28" if the lock is not at the begin of its variable or file, else "". */
static const char *format_offset(const struct json_node *line, const char *key, char text[32])
{
	uint64_t offset = line_table_read(line, key);

	text[0] = '\0';
	if (offset)
		snprintf(text, 32, "+0x%" PRIx64, offset);
	return text;
}

/* " on the heap", " in shared memory memfd:queue+0x40", " on the stack of thread 81", or "" */
static char *name_memory(const struct json_node *line)
{
	static const struct {
		const char *kind, *say;
	} rows[] = {
#define LOCK_MEMORY(id, json, say) { json, say },
#include "shared/abi/lock_memory.def"
#undef LOCK_MEMORY
	};
	const struct json_node *memory = json_node_get(line, "memory");
	_cleanup_free_ char *kind = member_text_value("kind", json_node_get(memory, "kind"));
	_cleanup_free_ char *name = member_text_value("name", json_node_get(memory, "name"));
	char *text = NULL, offset[32];

	for (size_t i = 0; kind && i < ARRAY_SIZE(rows); i++) {
		if (strcmp(kind, rows[i].kind) != 0)
			continue;
		if (json_node_get(memory, "tid"))
			return asprintf(&text, " %s of thread %" PRIu64, rows[i].say,
					line_table_read(memory, "tid")) < 0
				       ? NULL
				       : text;
		return asprintf(&text, " %s%s%s%s", rows[i].say, name ? " " : "", name ? name : "",
				name ? format_offset(memory, "offset", offset) : "") < 0
			       ? NULL
			       : text;
	}
	return strdup("");
}

/* "futex ledger_lock in libshop.so", "futex 0x7f00c0de1000 on the heap", "7 more locks" */
static char *name_lock(const struct json_node *line)
{
	_cleanup_free_ char *kind = member_text_value("kind", json_node_get(line, "kind"));
	_cleanup_free_ char *address = member_text_value("address", json_node_get(line, "address"));
	_cleanup_free_ char *module = member_text_value("module", json_node_get(line, "module"));
	_cleanup_free_ char *symbol = member_text_value("symbol", json_node_get(line, "symbol"));
	_cleanup_free_ char *memory = name_memory(line);
	char *text = NULL, offset[32];
	int n;

	if (json_node_get(line, "others"))
		n = asprintf(&text, "%" PRIu64 " more locks", line_table_read(line, "others"));
	else if (module)
		n = asprintf(&text, "%s %s%s in %s", kind ? kind : "-",
			     symbol    ? symbol
			     : address ? address
				       : "-",
			     format_offset(line, "symbol_offset", offset), labels_base(module));
	else
		n = asprintf(&text, "%s%s%s%s", kind ? kind : "-", address ? " " : "",
			     address ? address : "", memory ? memory : "");
	return n < 0 ? NULL : text;
}

/* Returns the first waker: "writer-3 in flush_index 97 %". */
static char *name_holder(const struct json_node *line)
{
	const struct json_node *waker = json_node_first(json_node_get(line, "wakers"));
	_cleanup_free_ char *by = member_text_value("by", json_node_get(waker, "by"));
	_cleanup_free_ char *comm = member_text_value("comm", json_node_get(waker, "comm"));
	_cleanup_free_ char *fn = member_text_value("fn", json_node_get(waker, "fn"));
	uint64_t all = line_table_read(line, "wait_ns"), held = line_table_read(waker, "held_ns");
	char *text = NULL;

	if (!waker || !by)
		return strdup("-");
	return asprintf(&text, "%s%s%s %.0f %%", comm ? comm : by, fn ? " in " : "", fn ? fn : "",
			all ? (double)held * 100 / (double)all : 0.0) < 0
		       ? NULL
		       : text;
}

static void add_lock(void *context, const struct json_node *line)
{
	struct text_table *table = context;

	line_table_time(table, line_table_read(line, "wait_ns"));
	line_table_number(table, line_table_read(line, "waits"));
	line_table_time(table, line_table_read(json_node_get(line, "longest"), "wait_ns"));
	line_table_time(table, line_table_read(line, "p99_ns"));
	line_table_number(table, line_table_read(line, "threads"));
	line_table_number(table, line_table_read(line, "pid"));
	text_table_add(table, name_lock(line));
	text_table_add(table, name_holder(line));
}

/* Prints an explanation of lock herds, below the table. */
static void print_herd(void *context, const struct json_node *line)
{
	_cleanup_free_ char *name = name_lock(line);
	_cleanup_free_ char *pattern = member_text_value("pattern", json_node_get(line, "pattern"));
	FILE *out = context;

	if (!name || !pattern || strcmp(pattern, "herd") != 0)
		return;
	fprintf(out,
		"  A thundering herd: each release of %s wakes several of %" PRIu64
		" threads, and %" PRIu64 " of %" PRIu64
		" waits were of threads that had just been woken and did not get it.\n",
		name, line_table_read(line, "threads"), line_table_read(line, "again"),
		line_table_read(line, "waits"));
}

/* Calls `call` for each of the first lines. 0 or -ENOMEM. */
static int read_locks(const struct store *store, const struct store_session *session,
		      void (*call)(void *context, const struct json_node *line), void *context)
{
	for (uint32_t i = 0; i < MIN(session->locks.count, (uint32_t)LOCKS_TOP); i++) {
		_cleanup_(json_tree_done) struct json_tree tree = { 0 };
		const struct json_node *line =
			text_report_lines_read(store, session->locks.items[i], &tree);

		if (!line)
			return -ENOMEM;
		call(context, line);
	}
	return 0;
}

int text_report_locks(const struct store *store, const struct store_session *session, FILE *out)
{
	static const char *const heads[] = { "WAITED",	"WAITS", "LONGEST", "P99",
					     "THREADS", "PID",	 "LOCK",    "BEHIND" };
	_cleanup_(text_table_done) struct text_table table;
	int r;

	text_table_init(&table, ARRAY_SIZE(heads));
	table.spare = 1u << 3 | 1u << 4; /* P99, THREADS */
	if (!session->locks.count)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		text_table_add(&table, strdup(heads[i]));
	r = read_locks(store, session, add_lock, &table);
	if (r < 0)
		return r;
	section_head(out, "locks",
		     "that threads waited for (a pool that waits for work is in it too)");
	r = text_table_print(&table, 2, out);
	if (session->locks.count > LOCKS_TOP)
		fprintf(out, "  and %" PRIu32 " more\n", session->locks.count - LOCKS_TOP);
	return r < 0 ? r : read_locks(store, session, print_herd, out);
}
