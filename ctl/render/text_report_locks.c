/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the locks with the most waits, and explains lock herds. */
#include "ctl/cli/member_text.h"
#include "ctl/render/section.h"
#include "ctl/render/sections.h"
#include "shared/tools/macro.h"

#define LOCKS_TOP 10

/* "futex ledger_lock in libshop.so", "futex 0x7f00c0de1000 on the heap", "7 more locks" */
static const char lock[] = "[others?{others:n} more locks][!others?{kind}[module? {symbol|address}"
			   "{symbol_offset:offset} in {module:base}][!module?[address? {address}]"
#define LOCK_MEMORY(id, json, say)                                                      \
	"[memory.kind=" json "? " say "[memory.tid? of thread {memory.tid:n}][!memory." \
	"tid?[memory.name? {memory.name}{memory.offset:offset}]]]"
#include "shared/abi/lock_memory.def"
#undef LOCK_MEMORY
			   "]]";

/* Prints the first waker: "writer-3 in flush_index 97 %". */
static void put_holder(const struct json_node *line, FILE *out)
{
	const struct json_node *waker = json_node_first(json_node_get(line, "wakers"));
	double all = (double)member_text_number(line, "wait_ns");

	member_text_put("[by?{comm|by}[fn? in {fn}]][!by?-]", waker, out);
	if (json_node_get(waker, "by"))
		fprintf(out, " %.0f %%",
			all > 0 ? (double)member_text_number(waker, "held_ns") * 100 / all : 0.0);
}

static const struct column columns[] = {
	{ "WAITED", "{wait_ns:ns}" },
	{ "WAITS", "{waits:n}" },
	{ "LONGEST", "{longest.wait_ns:ns}" },
	{ "P99", "{p99_ns:ns}", .flags = COLUMN_SPARE },
	{ "THREADS", "{threads:n}", .flags = COLUMN_SPARE },
	{ "PID", "{pid:n}" },
	{ "LOCK", lock },
	{ "BEHIND", .put = put_holder },
};

static const struct section_table table = {
	.head = "locks",
	.title = "that threads waited for (a pool that waits for work is in it too)",
	.columns = columns,
	.n = ARRAY_SIZE(columns),
	.top = LOCKS_TOP,
};

static void print_herd(const struct json_node *line, FILE *out)
{
	fputs("  A thundering herd: each release of ", out);
	member_text_put(lock, line, out);
	member_text_put(" wakes several of {threads:n} threads, and {again:n} of {waits:n} waits "
			"were of threads that had just been woken and did not get it.\n",
			line, out);
}

void text_report_locks(struct session_lines *s)
{
	const struct json_node *line;

	if (!section_table(s, &s->session->locks, &table))
		return;
	section_more(s->out, s->session->locks.count, LOCKS_TOP);
	session_lines_for_each (line, s, &s->session->locks, LOCKS_TOP)
		if (member_text_holds("pattern=herd", line))
			print_herd(line, s->out);
}
