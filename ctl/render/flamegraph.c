/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/flamegraph.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "ctl/cli/command_exit.h"
#include "ctl/cli/text.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

static bool is_oncpu(const struct view *v)
{
	const struct store *s = &v->input->store;

	return v->signals == 1 &&
	       !strcmp(pool_text(&s->texts, store_key_get(s, 0)->signal), "oncpu");
}

/* Returns whether all stacks are of threads that waited. */
static bool is_waits_alone(const struct view *v)
{
	return v->waits && v->signals == 1;
}

static void put_amount(const struct view *v, uint64_t value, double seconds, FILE *out)
{
	char text[TEXT_UNIT_BYTES];

	if (v->unit == VIEW_COUNT) {
		fprintf(out, "%" PRIu64 " samples", value);
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
	_cleanup_free_ char *tame = NULL;
	size_t bytes;
	const char *data;

	if (text == STORE_NONE)
		return;
	data = pool_get(&s->texts, text, &bytes);
	tame = text_tame(data, bytes);
	fprintf(out, "%s%s", before, tame ? tame : "-");
}

static bool is_broken(const struct store *s, uint32_t quality)
{
	return quality != STORE_NONE && !strcmp(pool_text(&s->texts, quality), "broken");
}

char *flamegraph_subtitle(const struct view *view, enum view_columns columns)
{
	const struct store *s = &view->input->store;
	const struct store_session *first = NULL;
	char when[CLOCK_TEXT_BYTES], *text = NULL;
	uint64_t samples = 0, broken = 0;
	size_t bytes;
	FILE *out;

	for (uint32_t i = s->ids.count; i-- > 0;)
		first = s->sessions[i].files ? &s->sessions[i] : first;
	for (uint32_t i = 0; i < s->keys.count; i++) {
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
		view->wall	       ? "samples and looks"
		: is_waits_alone(view) ? "looks"
				       : "samples");
	if (broken)
		fprintf(out, " (%" PRIu64 " without all of their callers)", broken);
	if (first) {
		clock_text(first->time_ns, when);
		fprintf(out, ", %.19s UTC", when);
		put_tame(s, ", session ", first->id, out);
		put_tame(s, ", rule ", first->rule, out);
		put_tame(s, ", verdict ", first->verdict, out);
	}
	return fclose(out) == EOF ? NULL : text;
}

/* Both phases side by side; one alone when it is asked for, or when the other has nothing. */
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

static int draw_panels(const struct options *options, struct view *view, const struct tree *tree)
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
		.states = view->waits || view->wall,
		.columns = { phases[0], phases[1] },
	};

	title = options->title ? text_tame(options->title, strlen(options->title))
			       : view_title(view);
	if (!title || !subtitle || !earlier || !during)
		return -ENOMEM;
	svg.title = title;
	choose_panels(&svg, view, heads);
	svg_write(&svg, options->out);
	return 0;
}

int flamegraph_call(const struct options *options, const char *const *arguments)
{
	_cleanup_(input_done) struct input input;
	_cleanup_(view_done) struct view view = { 0 };
	_cleanup_(tree_done) struct tree tree = { 0 };
	int r = input_read(options, arguments, &input);

	if (r)
		return r;
	r = view_init(&view, options, &input, VIEW_NS);
	if (r < 0)
		return r == -EINVAL ? COMMAND_USAGE : input_fail(options, &input, r);
	view.leaf_states = view.wall || is_waits_alone(&view);
	r = tree_init(&tree, &input.store.budget);
	if (r == 0)
		r = view_fill(&view, VIEW_PHASES, &tree);
	if (r == 0)
		r = tree_sort(&tree, &view.labels);
	if (r == 0)
		r = draw_panels(options, &view, &tree);
	return r < 0 ? input_fail(options, &input, r) : input_status(&input);
}
