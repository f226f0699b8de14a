/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "ctl/cli/command_exit.h"
#include "ctl/cli/terminal.h"
#include "ctl/cli/wrap.h"
#include "ctl/render/brief.h"
#include "ctl/render/sections.h"
#include "ctl/render/text_report_asides.h"
#include "ctl/render/text_report_functions.h"
#include "ctl/render/text_report_stalls.h"
#include "ctl/render/text_report_tasks.h"
#include "ctl/view/view.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define EARLIER TEXT_REPORT_EARLIER
#define DURING	TEXT_REPORT_DURING

#define BRIEF_FUNCTIONS 5 /* of the brief report */

struct text_report {
	struct input *input; /* input of the view */
	struct view *view;
	bool full;
	uint64_t top;
	FILE *out;
};

static void (*const sections[])(struct session_lines *s) = {
#define SECTION(function) function,
#include "ctl/render/sections.def"
#undef SECTION
};

/* Counts the samples of one signal, or of all selected signals. */
static void count_samples(const struct text_report *r, struct text_report_samples *ret_samples)
{
	const struct store *s = &r->input->store;

	*ret_samples = (struct text_report_samples){ 0 };
	for (uint32_t i = store_first(s, r->view->session); i != STORE_NONE;
	     i = store_next(s, r->view->session, i)) {
		int column = view_column(r->view, store_key_get(s, i), VIEW_PHASES);

		if (column >= 0)
			ret_samples->count[column] =
				store_sum(ret_samples->count[column], s->values[i].count);
	}
}

/*
 * If no thread ran during the stall, prints that and returns true: a table with empty columns next
 * to the baseline would hide it.
 */
static bool is_calm_alone(const struct text_report *r, const struct text_report_samples *samples)
{
	if (samples->count[DURING] || r->input->select.phase)
		return false;
	fprintf(r->out, "\nno sample during, %" PRIu64 " %s (--phase %s shows them)\n",
		samples->count[EARLIER], view_phase(r->view, EARLIER),
		view_phase(r->view, EARLIER));
	return true;
}

/* Prints the view as paths, unless `what` is NULL; with `ran` first as functions. */
static int print_view(struct text_report *r, const char *what, bool ran)
{
	_cleanup_(tree_done) struct tree tree = { 0 };
	struct text_report_samples samples;
	int e = tree_init(&tree, &r->input->store.budget);

	count_samples(r, &samples);
	if (e == 0)
		e = view_fill(r->view, VIEW_PHASES, &tree);
	if (e < 0 || !tree.nodes[TREE_ROOT].child || (ran && is_calm_alone(r, &samples)))
		return e;
	if (ran)
		e = text_report_functions(r->view, &tree, &samples, r->top, r->out);
	return e < 0 || !what ? e : text_report_functions_paths(r->view, &tree, what, r->out);
}

static bool has_stacks(const struct text_report *r)
{
	return store_first(&r->input->store, r->view->session) != STORE_NONE;
}

/* Prints running threads, then waiting threads, then the stacks of the other signals. */
static int print_signals(struct text_report *r)
{
	static const struct {
		const char *signal, *what;
		bool busy;
	} others[] = {
		{ "offcpu", "its threads waited (without waits for work or on a condition)", true },
#define SIGNAL(id, json, help) { json, "the signal " json " took stacks", false },
#include "shared/abi/signals.def"
#undef SIGNAL
	};
	uint32_t ran = view_find_signal(r->view, "oncpu"),
		 shown = view_find_signal(r->view, "offcpu"), one;
	int e;

	view_only(r->view, ran, false);
	e = print_view(r, "its threads ran", true);
	for (size_t i = 0; e == 0 && i < ARRAY_SIZE(others); i++) {
		one = view_find_signal(r->view, others[i].signal);
		if (one == STORE_NONE || one == ran || (i && one == shown))
			continue;
		view_only(r->view, one, others[i].busy);
		e = print_view(r, others[i].what, false);
	}
	view_only(r->view, ran, false);
	return e;
}

/* Prints stacks of one selected signal, or of both by time, unchanged. */
static int print_stacks(struct text_report *r, uint32_t session)
{
	int e;

	view_choose(r->view, session);
	view_only(r->view, STORE_NONE, false);
	if (!has_stacks(r)) {
		bool others = r->input->reader.unselected > 0;

		fprintf(r->out, "\nno stack of it is selected%s\n", others ? "; there are:" : "");
		offers_print_stacks(&r->input->reader.offers, &r->input->store, r->out);
		return 0;
	}
	if (view_find_signal(r->view, "oncpu") == STORE_NONE || r->view->wall ||
	    r->input->select.signal)
		e = print_view(r, "its threads were", true);
	else
		e = print_signals(r);
	return e < 0 ? e : text_report_tasks(r->view, r->out);
}

/* Prints the functions that ran into a new text. 0 or -errno. */
static int print_functions(const struct text_report *r, uint32_t session, char **ret_text)
{
	struct text_report brief = *r;
	size_t bytes;
	int e;

	brief.out = open_memstream(ret_text, &bytes);
	brief.top = MIN(r->top, (uint64_t)BRIEF_FUNCTIONS);
	if (!brief.out)
		return -ENOMEM;
	view_choose(r->view, session);
	view_only(r->view, view_find_signal(r->view, "oncpu"), false);
	e = has_stacks(&brief) ? print_view(&brief, NULL, true) : 0;
	fclose(brief.out);
	return e;
}

static int print_brief(const struct text_report *r, uint32_t number)
{
	_cleanup_(session_lines_done) struct session_lines lines;
	const struct terminal terminal = *terminal_get();
	struct terminal screen = terminal;
	_cleanup_free_ char *functions = NULL;
	const char *before = wrap_not();

	screen.columns = terminal_columns(BRIEF_COLUMNS) - BRIEF_CUT_COLUMNS;
	terminal_use(&screen);
	session_lines_open(&lines, &r->input->store, number, r->out);
	session_lines_fail(&lines, print_functions(r, number, &functions));
	if (lines.error == 0)
		brief_write(&lines, functions, before);
	terminal_use(&terminal);
	return lines.error;
}

static int print_full(struct text_report *r, uint32_t number)
{
	_cleanup_(session_lines_done) struct session_lines lines;

	session_lines_open(&lines, &r->input->store, number, r->out);
	for (size_t i = 0; lines.error == 0 && i < ARRAY_SIZE(sections); i++)
		sections[i](&lines);
	if (lines.error == 0)
		session_lines_fail(&lines, print_stacks(r, number));
	if (lines.error == 0)
		text_report_lines_ledger(&lines);
	return lines.error;
}

static int print_session(struct text_report *r, uint32_t number)
{
	return r->full ? print_full(r, number) : print_brief(r, number);
}

/* Prints the lines of no session; beside the screen of one session, that there are some. */
static int print_asides(const struct text_report *r)
{
	const struct store *s = &r->input->store;
	_cleanup_free_ char *text = NULL;
	size_t bytes = 0;
	FILE *out;
	int e;

	if (r->full)
		return text_report_asides(&r->input->reader.asides, s, r->out);
	out = open_memstream(&text, &bytes);
	if (!out)
		return -ENOMEM;
	e = text_report_asides(&r->input->reader.asides, s, out);
	fclose(out);
	if (e == 0 && bytes)
		fputs("besides there are errors, held triggers or refused rules: --full\n", r->out);
	return e;
}

static int print_all(struct text_report *r)
{
	const struct store *s = &r->input->store;
	unsigned int n = 0;
	int e = 0;

	for (uint32_t i = 0; i < s->ids.count; i++)
		n += s->sessions[i].files > 0;
	/* Beside the screen of one session, the list of all would be too much. */
	if (r->full || n > 1)
		e = text_report_stalls(s, r->out);
	n = 0;
	for (uint32_t i = 0; e == 0 && i < s->ids.count; i++) {
		if (!s->sessions[i].files)
			continue;
		if (n++)
			fputs("\n----\n\n", r->out);
		e = print_session(r, i);
	}
	return e < 0 ? e : print_asides(r);
}

int text_report_write(struct view *view, bool full, uint64_t top, FILE *out)
{
	struct text_report report = {
		.input = view->input, .view = view, .full = full, .top = top, .out = out
	};

	view->n_by = 0;
	return print_all(&report);
}

int text_report_write_one(struct view *view, uint32_t session, uint64_t top, FILE *out)
{
	struct text_report report = {
		.input = view->input, .view = view, .full = true, .top = top, .out = out
	};

	view->n_by = 0;
	return print_session(&report, session);
}

static int print_report(const struct options *options, struct view *view)
{
	int r = text_report_write(view, options->full, options->top, options->out);

	if (r == 0)
		input_say_left(options, view->input);
	return r;
}

int text_report_call(const struct options *options, const char *const *arguments)
{
	_cleanup_(input_done) struct input input = { 0 };
	int r = input_read_sessions(options, arguments, &input);

	return r ? r : view_print(options, &input, VIEW_NS, print_report);
}
