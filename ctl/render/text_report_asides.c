/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report_asides.h"

#include <inttypes.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/text.h"
#include "ctl/render/session_lines.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* One row, with the last line of its kind. */
struct row {
	const struct store *store;
	const struct aside_kind *kind;
	const struct aside *aside;
	const struct json_node *line; /* NULL: no memory */
	FILE *out;
};

static void put_text(const struct row *row, const char *before, uint32_t text)
{
	_cleanup_free_ char *tame = store_tame(row->store, text);

	fprintf(row->out, "%s%s", before, tame ? tame : "-");
}

static void put_ms(const struct row *row, const char *before, uint64_t ms)
{
	char text[TEXT_UNIT_BYTES];

	fprintf(row->out, "%s%s", before,
		text_duration_us(MIN(ms, UINT64_MAX / 1000) * 1000, text));
}

/* "  held back (budget_rule): 12 triggers, cpu, in /c, stalled for 12.0 s, at most 2.0 s at once"
 */
static void put_held(const struct row *row)
{
	put_text(row, "  held back (", row->kind->what);
	fprintf(row->out, "): %" PRIu64 " trigger%s", row->aside->count, text_s(row->aside->count));
	put_text(row, ", ", row->kind->of);
	put_text(row, ", in ", row->kind->where);
	if (!row->aside->sum_ms) {
		fputc('\n', row->out);
		return;
	}
	put_ms(row, ", stalled for ", row->aside->sum_ms);
	put_ms(row, ", at most ", row->aside->largest_ms);
	fputs(" at once\n", row->out);
}

static void put_times(const struct row *row)
{
	char when[CLOCK_TEXT_BYTES];

	clock_text(row->aside->time_ns, when);
	if (row->aside->count > 1)
		fprintf(row->out, ", %" PRIu64 " times, the last", row->aside->count);
	fprintf(row->out, " at %.19s UTC", when);
}

static void put_error(const struct row *row)
{
	put_text(row, "  error ", row->kind->what);
	put_times(row);
	member_text_put("[message?: {message}][hint?; {hint}]\n", row->line, row->out);
}

static void put_rejected(const struct row *row)
{
	const struct json_node *fault = json_node_first(json_node_get(row->line, "faults"));

	fputs("  rules refused", row->out);
	put_times(row);
	member_text_put(
		"[source?, from {source}][fault_count?: {fault_count}] fault{fault_count:s}",
		row->line, row->out);
	member_text_put("[pointer?: {pointer}][message? {message}]\n", fault, row->out);
}

static void put_row(const struct row *row)
{
	if (row->kind->type == EVENT_HELD)
		put_held(row);
	else if (row->kind->type == EVENT_ERROR)
		put_error(row);
	else
		put_rejected(row);
}

int text_report_asides(const struct asides *asides, const struct store *store, FILE *out)
{
	struct session_lines lines = { .store = store };

	if (asides->kinds.count)
		fputs("\n----\n\nbesides the sessions:\n", out);
	for (uint32_t i = 0; i < asides->kinds.count; i++) {
		_cleanup_(json_tree_done) struct json_tree tree = { 0 };
		struct row row = {
			.store = store,
			.kind = asides_kind(asides, i),
			.aside = &asides->rows[i],
			.line = session_lines_read(&lines, asides->rows[i].line, &tree),
			.out = out,
		};

		if (row.line)
			put_row(&row);
	}
	return lines.error;
}
