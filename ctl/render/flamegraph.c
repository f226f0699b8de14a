/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/flamegraph.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "ctl/cli/command_exit.h"
#include "ctl/cli/text.h"
#include "ctl/render/text_report_functions.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* Returns the only shown signal; STORE_NONE: there are several. */
static uint32_t find_shown_signal(const struct view *v)
{
	if (v->signal != STORE_NONE || v->signals != 1)
		return v->signal;
	return store_key_get(&v->input->store, 0)->signal;
}

static bool is_oncpu(const struct view *v)
{
	uint32_t signal = find_shown_signal(v);

	return signal != STORE_NONE && !strcmp(pool_text(&v->input->store.texts, signal), "oncpu");
}

/* Returns whether all stacks are of threads that waited. */
static bool is_waits_alone(const struct view *v)
{
	return v->waits && find_shown_signal(v) != STORE_NONE && !is_oncpu(v);
}

static void put_amount(const struct view *v, uint64_t value, double seconds, FILE *out)
{
	char text[TEXT_UNIT_BYTES];

	if (v->unit == VIEW_COUNT) {
		fprintf(out, "%" PRIu64 " sample%s", value, text_s(value));
		return;
	}
	fprintf(out, "%s%s", text_duration_us(value / NSEC_PER_USEC, text),
		is_oncpu(v) ? " on CPU" : "");
	if (seconds > 0)
		fprintf(out, is_oncpu(v) ? " (%.2f CPUs)" : " (%.2f at a time)",
			(double)value / (double)NSEC_PER_SEC / seconds);
}

char *flamegraph_head(const struct view *view, const struct tree *tree, enum view_columns columns,
		      unsigned int column, const char *name)
{
	double seconds = view_seconds(view, columns, column);
	uint64_t total = tree->nodes[TREE_ROOT].total[column];
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return NULL;
	fprintf(out, "%s: ", name);
	if (seconds > 0)
		fprintf(out, "%.1f s, ", seconds);
	if (total)
		put_amount(view, total, seconds, out);
	else
		fputs("nothing was sampled", out);
	return fclose(out) == EOF ? NULL : text;
}

static void put_tame(const struct store *s, const char *before, uint32_t text, FILE *out)
{
	_cleanup_free_ char *tame = store_tame(s, text);

	if (text != STORE_NONE)
		fprintf(out, "%s%s", before, tame ? tame : "-");
}

static bool is_broken(const struct store *s, uint32_t quality)
{
	return quality != STORE_NONE && !strcmp(pool_text(&s->texts, quality), "broken");
}

/* Prints time, id, rule and verdict of one session; for several sessions their times. */
static void put_sessions(const struct view *v, FILE *out)
{
	const struct store *s = &v->input->store;
	const struct store_session *first = NULL, *last = NULL;
	char when[CLOCK_TEXT_BYTES];

	for (uint32_t i = 0; i < s->ids.count; i++) {
		const struct store_session *one = &s->sessions[i];

		if (!one->files || (v->session != STORE_NONE && v->session != i))
			continue;
		first = first && first->time_ns <= one->time_ns ? first : one;
		last = last && last->time_ns > one->time_ns ? last : one;
	}
	if (!first)
		return;
	clock_text(first->time_ns, when);
	fprintf(out, ", %.19s", when);
	if (last != first) {
		clock_text(last->time_ns, when);
		fprintf(out, " to %.19s UTC", when);
		return;
	}
	fputs(" UTC", out);
	put_tame(s, ", session ", first->id, out);
	put_tame(s, ", rule ", first->rule, out);
	put_tame(s, ", verdict ", first->verdict, out);
}

char *flamegraph_subtitle(const struct view *view, enum view_columns columns)
{
	const struct store *s = &view->input->store;
	uint64_t samples = 0, broken = 0;
	char *text = NULL;
	size_t bytes;
	FILE *out;

	for (uint32_t i = store_first(s, view->session); i != STORE_NONE;
	     i = store_next(s, view->session, i)) {
		if (view_column(view, store_key_get(s, i), columns) < 0)
			continue;
		samples = store_sum(samples, s->values[i].count);
		if (is_broken(s, store_key_get(s, i)->quality))
			broken = store_sum(broken, s->values[i].count);
	}
	out = open_memstream(&text, &bytes);
	if (!out)
		return NULL;
	fprintf(out, "%" PRIu64 " %s", samples,
		view->wall	       ? "samples, on and off CPU"
		: is_waits_alone(view) ? "off-CPU samples"
				       : "samples");
	if (broken)
		fprintf(out, " (%" PRIu64 " without all of their callers)", broken);
	if (samples && samples < TEXT_REPORT_FEW_SAMPLES)
		fprintf(out, ", fewer than %d: the shares are rough", TEXT_REPORT_FEW_SAMPLES);
	put_sessions(view, out);
	return fclose(out) == EOF ? NULL : text;
}

/*
 * Shows both phases next to each other; only one if the user selected it, or if the other is empty.
 */
static void choose_panels(struct svg *svg, const struct view *view, char *const heads[TREE_COLUMNS])
{
	const uint64_t *totals = svg->tree->nodes[TREE_ROOT].total;
	const char *phase = view->input->select.phase;

	for (unsigned int c = 0; c < TREE_COLUMNS; c++) {
		bool alone = phase ? !strcmp(phase, svg->columns[c]) : !totals[!c];

		if ((phase || !totals[!c] || !totals[c]) && !alone)
			continue;
		svg->panels[svg->n_panels++] = (struct svg_panel){ heads[c], c, totals[c] };
		if (alone)
			break;
	}
}

static int draw_panels(const char *asked, bool inverted, struct view *view, const struct tree *tree,
		       FILE *out)
{
	_cleanup_free_ char *title = NULL, *subtitle = flamegraph_subtitle(view, VIEW_PHASES);
	const char *const phases[] = { view_phase(view, 0), view_phase(view, 1) };
	_cleanup_free_ char *earlier = flamegraph_head(view, tree, VIEW_PHASES, 0, phases[0]);
	_cleanup_free_ char *during = flamegraph_head(view, tree, VIEW_PHASES, 1, phases[1]);
	char *const heads[] = { earlier, during };
	struct svg svg = {
		.tree = tree,
		.labels = &view->labels,
		.unit = view->unit,
		.subtitle = subtitle,
		.states = is_waits_alone(view) || view->wall,
		.columns = { phases[0], phases[1] },
		.inverted = inverted,
	};

	title = asked ? text_tame(asked, strlen(asked)) : view_title(view);
	if (!title || !subtitle || !earlier || !during)
		return -ENOMEM;
	svg.title = title;
	choose_panels(&svg, view, heads);
	svg_write(&svg, out);
	return 0;
}

int flamegraph_draw(struct view *view, const char *title, bool inverted, FILE *out)
{
	_cleanup_(tree_done) struct tree tree = { 0 };
	int r;

	view->leaf_states = view->wall || is_waits_alone(view);
	r = tree_init(&tree, &view->input->store.budget);
	if (r == 0)
		r = view_fill(view, VIEW_PHASES, &tree);
	if (r == 0)
		r = tree_sort(&tree, &view->labels);
	return r < 0 ? r : draw_panels(title, inverted, view, &tree, out);
}

static int print_picture(const struct options *options, struct view *view)
{
	return flamegraph_draw(view, options->title, options->inverted, options->out);
}

int flamegraph_call(const struct options *options, const char *const *arguments)
{
	_cleanup_(input_done) struct input input = { 0 };
	int r;

	if (isatty(fileno(options->out))) {
		fputs("trocar: flamegraph writes a picture for a browser: send it to a file\n",
		      options->err);
		return COMMAND_USAGE;
	}
	r = input_read_stacks(options, arguments, false, &input);
	return r ? r : view_print(options, &input, VIEW_NS, print_picture);
}
