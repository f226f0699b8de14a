/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report_pools.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/terminal.h"
#include "ctl/cli/text.h"
#include "ctl/render/section.h"
#include "ctl/render/text_report_lines.h"
#include "shared/json/json_tree.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
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

static const enum terminal_style styles[PARTS] = {
#define PART(id, json, help) STYLE_##id,
#include "shared/abi/account_parts.def"
#undef PART
	STYLE_QUIET,
	STYLE_IDLE,
};

/* The times of one line. */
struct pool_times {
	uint64_t wall_ns, ns[PARTS];
};

static uint64_t read_ns(const struct json_node *line, const char *key)
{
	return json_node_u64(json_node_get(line, key));
}

static void read_times(const struct json_node *line, struct pool_times *ret_times)
{
	const struct json_node *blocked = json_node_get(line, "blocked_ns");

	ret_times->wall_ns = read_ns(line, "wall_ns");
	ret_times->ns[ACCOUNT_RUNNING] = read_ns(line, "running_ns");
	ret_times->ns[ACCOUNT_QUEUE] = read_ns(line, "queue_ns");
	for (int i = ACCOUNT_QUEUE + 1; i < ACCOUNT_PARTS_; i++)
		ret_times->ns[i] = read_ns(blocked, names[i]);
	ret_times->ns[UNACCOUNTED] = read_ns(line, "unaccounted_ns");
	ret_times->ns[CONDITION] = MIN(read_ns(line, "condition_ns"), ret_times->ns[ACCOUNT_LOCK]);
	ret_times->ns[ACCOUNT_LOCK] -= ret_times->ns[CONDITION];
}

/* Returns whether lines are narrow. */
static bool is_narrow(void)
{
	return terminal_columns(UINT32_MAX) < WIDE_COLUMNS;
}

/* Draws each part in the columns from the begin of its time to the end. */
static char *draw_bar(const struct pool_times *t)
{
	unsigned int columns = is_narrow() ? BAR_COLUMNS_FEW : BAR_COLUMNS, at = 0;
	char *bar = NULL;
	double sum = 0;
	size_t bytes;
	FILE *out = open_memstream(&bar, &bytes);

	if (!out)
		return NULL;
	for (int i = 0; i < PARTS; i++) {
		unsigned int until;

		sum += (double)t->ns[i];
		until = t->wall_ns ? (unsigned int)(sum / (double)t->wall_ns * columns + 0.5) : 0;
		until = MIN(until, columns);
		if (at >= until)
			continue;
		fputs(terminal_on(styles[i]), out);
		for (; at < until; at++)
			fputc(marks[i], out);
		fputs(terminal_off(), out);
	}
	return fclose(out) == EOF ? NULL : bar;
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
static char *name_parts(const struct pool_times *t)
{
	char text[128] = "";
	uint32_t named = 0;
	size_t n = 0;

	for (int i = 0; i < PARTS_NAMED - is_narrow(); i++) {
		int part = find_largest(t, named);

		if (part < 0)
			break;
		named |= 1u << part;
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s %.0f %%", i ? ", " : "",
				      names[part], 100 * (double)t->ns[part] / (double)t->wall_ns);
	}
	return strdup(text);
}

static char *print_number(uint64_t number)
{
	char *text = NULL;

	return asprintf(&text, "%" PRIu64, number) < 0 ? NULL : text;
}

/* Sets *waits if the pool has waited on condition variables. */
static void add_pool(struct text_table *table, const struct json_node *line, bool *waits)
{
	const struct json_node *pool = json_node_get(line, "pool");
	struct pool_times times = { 0 };
	char *name = NULL, text[TEXT_UNIT_BYTES];

	read_times(line, &times);
	*waits = *waits || times.ns[CONDITION];
	if (terminal_get()->is_one)
		text_table_add(table, draw_bar(&times));
	text_table_add(table, name_parts(&times));
	text_table_add(table, strdup(text_duration_us(times.wall_ns / NSEC_PER_USEC, text)));
	text_table_add(table, print_number(read_ns(line, "threads")));
	if (pool) {
		text_table_add(table, print_number(read_ns(line, "pid")));
		text_table_add(table, member_text_value("pool", pool));
		return;
	}
	text_table_add(table, strdup("-"));
	text_table_add(table, asprintf(&name, "%" PRIu64 " more pools", read_ns(line, "others")) < 0
				      ? NULL
				      : name);
}

static int add_pools(const struct store *store, const struct store_session *session,
		     struct text_table *table, bool *waits)
{
	for (uint32_t i = 0; i < MIN(session->pools.count, (uint32_t)POOLS_TOP); i++) {
		_cleanup_(json_tree_done) struct json_tree tree = { 0 };
		const struct json_node *line =
			text_report_lines_read(store, session->pools.items[i], &tree);

		if (!line)
			return -ENOMEM;
		add_pool(table, line, waits);
	}
	return 0;
}

/* "# running, = queue, i io, ..."; `waits`: some bar has condition variables. */
static void put_marks(bool waits, FILE *out)
{
	fputs("  ", out);
	for (int i = 0; i < ACCOUNT_PARTS_; i++)
		fprintf(out, "%s%s%c%s %s", i ? ", " : "", terminal_on(styles[i]), marks[i],
			terminal_off(), names[i]);
	if (waits)
		fprintf(out, ",\n  %s%c%s condition: for work, or for another thread",
			terminal_on(styles[CONDITION]), marks[CONDITION], terminal_off());
	fputs("\n", out);
}

int text_report_pools(const struct store *store, const struct store_session *session, FILE *out)
{
	static const char *const heads[] = {
		"TIME", "MOST OF IT", "SUM", "THREADS", "PID", "POOL"
	};
	bool bars = terminal_get()->is_one, waits = false;
	_cleanup_(text_table_done) struct text_table table;
	int r;

	text_table_init(&table, ARRAY_SIZE(heads) - !bars);
	table.rigid = bars; /* the bar is the first */
	table.spare = 1u << 4 >> !bars;
	if (!session->pools.count)
		return 0;
	for (size_t i = !bars; i < ARRAY_SIZE(heads); i++)
		text_table_add(&table, strdup(heads[i]));
	r = add_pools(store, session, &table, &waits);
	if (r < 0)
		return r;
	section_head(out, "account", "the time of the threads, by state");
	r = text_table_print(&table, 2, out);
	if (session->pools.count > POOLS_TOP)
		fprintf(out, "  and %" PRIu32 " more\n", session->pools.count - POOLS_TOP);
	if (bars)
		put_marks(waits, out);
	return r;
}
