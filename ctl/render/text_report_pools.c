/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the time of the threads of each pool, by state. */
#include <stdlib.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/terminal.h"
#include "ctl/render/section.h"
#include "ctl/render/sections.h"
#include "shared/tools/macro.h"

#define BAR_COLUMNS	30
#define BAR_COLUMNS_FEW 18
#define WIDE_COLUMNS	100 /* narrower terminals have shorter bars */
#define POOLS_TOP	10
#define PARTS_NAMED	3 /* next to a bar */
#define NAMED_PCT	1 /* a smaller share of a pool's time is not named */

enum {
#define PART(id, json, help) ACCOUNT_##id,
#include "shared/abi/account_parts.def"
#undef PART
	ACCOUNT_PARTS_
};

/* Two parts in addition to the parts of an account. */
#define UNACCOUNTED ACCOUNT_PARTS_
#define CONDITION   (ACCOUNT_PARTS_ + 1) /* part of ACCOUNT_LOCK: on condition variables */
#define PARTS	    (ACCOUNT_PARTS_ + 2)

static const char *const names[PARTS] = {
#define PART(id, json, help) (json),
#include "shared/abi/account_parts.def"
#undef PART
	"unaccounted",
	"condition",
};

/* The mark of each part in a bar. */
static const char marks[PARTS] = {
	[ACCOUNT_RUNNING] = '#', [ACCOUNT_QUEUE] = '=',	 [ACCOUNT_IO] = 'i',
	[ACCOUNT_MEMORY] = 'm',	 [ACCOUNT_LOCK] = 'l',	 [ACCOUNT_SLEEP] = 's',
	[ACCOUNT_IDLE] = '.',	 [ACCOUNT_PIPE] = 'p',	 [ACCOUNT_SOCKET] = 'n',
	[ACCOUNT_CHILD] = 'c',	 [ACCOUNT_FAULT] = 'f',	 [ACCOUNT_OTHER] = 'o',
	[ACCOUNT_STOPPED] = 'z', [ACCOUNT_TRACED] = 't', [ACCOUNT_FROZEN] = 'x',
	[UNACCOUNTED] = '?',	 [CONDITION] = 'w',
};

static const char *begin_style(int part)
{
	return terminal_on(part == UNACCOUNTED ? STYLE_QUIET
			   : part == CONDITION ? STYLE_IDLE
					       : STYLE_RUNNING + (enum terminal_style)part);
}

/* The times of one line. */
struct pool_times {
	uint64_t wall_ns, ns[PARTS];
};

static void read_times(const struct json_node *line, struct pool_times *ret_times)
{
	const struct json_node *blocked = json_node_get(line, "blocked_ns");

	ret_times->wall_ns = member_text_number(line, "wall_ns");
	ret_times->ns[ACCOUNT_RUNNING] = member_text_number(line, "running_ns");
	ret_times->ns[ACCOUNT_QUEUE] = member_text_number(line, "queue_ns");
	for (int i = ACCOUNT_QUEUE + 1; i < ACCOUNT_PARTS_; i++)
		ret_times->ns[i] = member_text_number(blocked, names[i]);
	ret_times->ns[UNACCOUNTED] = member_text_number(line, "unaccounted_ns");
	ret_times->ns[CONDITION] =
		MIN(member_text_number(line, "condition_ns"), ret_times->ns[ACCOUNT_LOCK]);
	ret_times->ns[ACCOUNT_LOCK] -= ret_times->ns[CONDITION];
}

/* Returns whether lines are narrow. */
static bool is_narrow(void)
{
	return terminal_columns(UINT32_MAX) < WIDE_COLUMNS;
}

/* Draws each part in the columns from the begin of its time to the end. */
static void put_bar(const struct json_node *line, FILE *out)
{
	unsigned int columns = is_narrow() ? BAR_COLUMNS_FEW : BAR_COLUMNS, at = 0;
	struct pool_times t;
	double sum = 0;

	read_times(line, &t);
	for (int i = 0; i < PARTS; i++) {
		unsigned int until = 0;

		sum += (double)t.ns[i];
		if (t.wall_ns)
			until = (unsigned int)MIN(sum / (double)t.wall_ns * columns + 0.5,
						  (double)columns);
		if (at >= until)
			continue;
		fputs(begin_style(i), out);
		for (; at < until; at++)
			fputc(marks[i], out);
		fputs(terminal_off(), out);
	}
}

/* Returns the part with the most time that is not in `named` yet; -1: none has NAMED_PCT. */
static int find_largest(const struct pool_times *t, uint32_t named)
{
	int largest = -1;

	for (int i = 0; i < PARTS; i++)
		if (!(named & 1u << i) && (largest < 0 || t->ns[i] > t->ns[largest]))
			largest = i;
	return largest >= 0 && t->ns[largest] &&
			       (double)t->ns[largest] * 100 >= (double)t->wall_ns * NAMED_PCT
		       ? largest
		       : -1;
}

/* "lock 83 %, running 10 %" */
static void put_parts(const struct json_node *line, FILE *out)
{
	struct pool_times t;
	uint32_t named = 0;
	int part;

	read_times(line, &t);
	for (int i = 0; i < PARTS_NAMED - is_narrow() && (part = find_largest(&t, named)) >= 0;
	     i++) {
		named |= 1u << part;
		fprintf(out, "%s%s %.0f %%", i ? ", " : "", names[part],
			100 * (double)t.ns[part] / (double)t.wall_ns);
	}
}

static const struct column columns[] = {
	{ "TIME", .put = put_bar, .flags = COLUMN_RIGID },
	{ "MOST OF IT", .put = put_parts },
	{ "SUM", "{wall_ns:ns}" },
	{ "THREADS", "{threads:n}" },
	{ "PID", "[pool?{pid:n}][!pool?-]", .flags = COLUMN_SPARE },
	{ "POOL", "[pool?{pool}][!pool?{others:n} more pools]" },
};

/* Returns whether a printed pool has waited on condition variables. */
static bool has_waits(struct session_lines *s)
{
	const struct json_node *line;
	struct pool_times t;

	session_lines_for_each (line, s, &s->session->pools, POOLS_TOP) {
		read_times(line, &t);
		if (t.ns[CONDITION])
			return true;
	}
	return false;
}

/* "# running, = queue, i io, ..."; `waits`: some bar has condition variables. */
static void put_marks(bool waits, FILE *out)
{
	fputs("  ", out);
	for (int i = 0; i < ACCOUNT_PARTS_; i++)
		fprintf(out, "%s%s%c%s %s", i ? ", " : "", begin_style(i), marks[i], terminal_off(),
			names[i]);
	if (waits)
		fprintf(out, ",\n  %s%c%s condition: for work, or for another thread",
			begin_style(CONDITION), marks[CONDITION], terminal_off());
	fputs("\n", out);
}

void text_report_pools(struct session_lines *s)
{
	bool bars = terminal_get()->is_one;
	const struct section_table table = {
		.head = "account",
		.title = "the time of the threads, by state",
		.columns = columns + !bars,
		.n = ARRAY_SIZE(columns) - !bars,
		.top = POOLS_TOP,
	};

	if (!section_table(s, &s->session->pools, &table))
		return;
	section_more(s->out, s->session->pools.count, POOLS_TOP);
	if (bars)
		put_marks(has_waits(s), s->out);
}
