/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the waits of threads that sampling passes found, by place and object. */
#include "ctl/render/text_report_waits.h"

#include <inttypes.h>

#include "ctl/cli/member_text.h"
#include "ctl/render/section.h"
#include "ctl/render/sections.h"
#include "shared/tools/macro.h"

/* "ProcSleep < LockAcquireExtended < heap_update": the function and its callers. */
static void put_place(const struct json_node *wait, FILE *out)
{
	const struct json_node *caller = json_node_first(json_node_get(wait, "callers"));

	member_text_put("{fn}", wait, out);
	for (; json_node_get(wait, "fn") && caller; caller = json_node_next(caller)) {
		_cleanup_free_ char *name = member_text_value("fn", caller);

		fprintf(out, " < %s", name ? name : "-");
	}
}

/* Prints the contents of the set of a poll or select, "2 unix, 1 timerfd". */
static void put_kinds(const char *before, const struct json_node *kinds, FILE *out)
{
	static const char *const names[] = {
#define LOOK_MEMBER(id, json, help) json,
#include "shared/abi/look_members.def"
#undef LOOK_MEMBER
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		uint64_t n = json_node_u64(json_node_get(kinds, names[i]));

		if (!n)
			continue;
		fprintf(out, "%s%" PRIu64 " %s", before, n, names[i]);
		before = ", ";
	}
}

void text_report_waits_object(const struct json_node *on, const char *before, FILE *out)
{
	const struct json_node *what = json_node_get(on, "what");
	bool is_socket = json_node_equals(what, "socket"), path = json_node_get(on, "path");
	const char *form = NULL;

	if (json_node_get(on, "peer"))
		form = is_socket ? "socket to {peer}[peer_comm? of {peer_comm} {peer_pid}]"
				 : "answers of {peer}[peer_comm? of {peer_comm} {peer_pid}]";
	else if (json_node_equals(what, "pipe"))
		form = "[full=true?full ]pipe[peer_comm?[full=true? to][!full=true? from] "
		       "{peer_comm} {peer_pid}]";
	else if (json_node_equals(what, "child") && json_node_get(on, "peer_comm"))
		form = "{peer_comm} {peer_pid}";
	else if (json_node_equals(what, "tracer") || json_node_equals(what, "sender"))
		form = "{name} {pid}";
	else if (json_node_equals(what, "file"))
		form = path || json_node_get(on, "name")
			       ? "file {path|name}[peer_comm? of {peer_comm} {peer_pid}]"
			       : "-";
	else if (path && (is_socket || json_node_get(on, "asked")))
		form = is_socket ? "unix socket {path}" : "answers of the unix socket {path}";
	else if (json_node_equals(what, "poll") || json_node_equals(what, "select"))
		put_kinds(before, json_node_get(on, "kinds"), out);
	if (!form)
		return;
	fputs(before, out);
	member_text_put(form, on, out);
}

static void put_object(const struct json_node *wait, FILE *out)
{
	text_report_waits_object(json_node_get(wait, "on"), "", out);
}

static const struct column columns[] = {
	{ "WAITED", "{weight_ms}" },
	{ "THREADS", "{threads:n}" },
	{ "FOR",
	  "[idle=true?idle][!idle=true?[condition=true?condition][!condition=true?[wait?{wait}]"
	  "[!wait?for a CPU]]]",
	  .flags = COLUMN_RIGID },
	{ "WHERE", .put = put_place, .flags = COLUMN_ENDS },
	{ "ON", .put = put_object },
};

/* Prints the waits; with `blocked` none of threads without work. */
static void print_waits(struct session_lines *s, bool blocked)
{
	_cleanup_(text_table_done) struct text_table table;
	const struct json_node *wait = json_node_first(json_node_get(s->end, "waits"));
	uint64_t looks = member_text_number(s->end, "looks.passes");
	unsigned int n = 0;

	columns_begin(&table, columns, ARRAY_SIZE(columns));
	for (; wait; wait = json_node_next(wait)) {
		if (blocked && member_text_holds("idle=true", wait))
			continue;
		columns_add(&table, columns, wait);
		n++;
	}
	if (!n)
		return;
	section_head(s->out, "waits", "of threads, in %" PRIu64 " sampling pass%s", looks,
		     looks == 1 ? "" : "es");
	section_print(s, &table);
}

void text_report_waits(struct session_lines *s)
{
	print_waits(s, false);
}

void text_report_waits_blocked(struct session_lines *s)
{
	print_waits(s, true);
}
