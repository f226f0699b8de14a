/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report_functions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/terminal.h"
#include "ctl/cli/text.h"
#include "ctl/cli/text_width.h"
#include "ctl/render/section.h"
#include "ctl/view/hot.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define EARLIER TEXT_REPORT_EARLIER
#define DURING	TEXT_REPORT_DURING

#define BAR_COLUMNS   10
#define PATHS_TOP     5
#define PATH_LEAST    0.01 /* of all: a path with a smaller share is not printed */
#define NAME_COLUMNS  48   /* of one function in a path on a terminal */
#define CHANGE_SIGMAS 3	   /* a change within this many sigmas may be chance */

/* The factors from a value of a column to time per second, and to samples. */
struct rates {
	double per_second[TREE_COLUMNS]; /* 0: the length of the phase is not known */
	double of_sample[TREE_COLUMNS];	 /* 0: no sample */
};

static void find_rates(const struct view *view, const struct tree *tree,
		       const struct text_report_samples *samples, struct rates *ret_rates)
{
	for (unsigned int c = 0; c < TREE_COLUMNS; c++) {
		double seconds = view_seconds(view, VIEW_PHASES, c);
		uint64_t n = samples->count[c];

		ret_rates->per_second[c] = seconds > 0 ? 1 / seconds : 0;
		ret_rates->of_sample[c] =
			n ? (double)tree->nodes[TREE_ROOT].total[c] / (double)n : 0;
	}
}

/*
 * "x4.2", "/2.0", "new", "gone"; "=" if the difference may be chance, "-" if there is nothing to
 * compare with. Counts one extra sample in each phase, because no sample does not prove that there
 * was no time.
 */
static char *format_change(const struct hot_function *f, const struct rates *r)
{
	double rate[TREE_COLUMNS], variance = 0, change;
	char text[32];

	for (unsigned int c = 0; c < TREE_COLUMNS; c++) {
		double one = r->of_sample[c] * r->per_second[c];

		if (one <= 0)
			return strdup("-");
		rate[c] = (double)f->total[c] * r->per_second[c];
		variance += ((double)f->total[c] / r->of_sample[c] + 1) * one * one;
	}
	change = rate[DURING] - rate[EARLIER];
	if (change * change < CHANGE_SIGMAS * CHANGE_SIGMAS * variance)
		return strdup("=");
	if (!f->total[EARLIER] || !f->total[DURING])
		return strdup(f->total[DURING] ? "new" : "gone");
	snprintf(text, sizeof(text), change > 0 ? "x%.1f" : "/%.1f",
		 change > 0 ? rate[DURING] / rate[EARLIER] : rate[EARLIER] / rate[DURING]);
	return strdup(text);
}

static void add_function(const struct view *view, struct text_table *table,
			 const struct tree_node *root, const struct hot_function *f,
			 const struct rates *rates)
{
	const char *module = labels_module(&view->labels, f->label);
	double share =
		root->total[DURING] ? (double)f->total[DURING] / (double)root->total[DURING] : 0;

	section_share(table, f->total[DURING], root->total[DURING]);
	section_share(table, f->total[EARLIER], root->total[EARLIER]);
	text_table_add(table, format_change(f, rates));
	section_share(table, f->self[DURING], root->total[DURING]);
	if (terminal_get()->is_one)
		text_table_add(table, section_bar(share, BAR_COLUMNS));
	text_table_add(table, strdup(labels_get(&view->labels, f->label)));
	text_table_add(table, module ? strdup(module) : NULL);
}

static void add_heads(const struct view *view, struct text_table *table)
{
	const char *const heads[] = { "DURING", view->earlier == STORE_ONSET ? "ONSET" : "BEFORE",
				      "CHANGE", "SELF",
				      "",	"FUNCTION",
				      "MODULE" };
	bool bars = terminal_get()->is_one;

	text_table_words(table, heads, 4);
	text_table_words(table, heads + 5 - bars, 2 + bars);
}

int text_report_functions(struct view *view, const struct tree *tree,
			  const struct text_report_samples *samples, uint64_t top, FILE *out)
{
	unsigned int columns = terminal_get()->is_one ? 7 : 6;
	_cleanup_(text_table_done) struct text_table table;
	_cleanup_(hot_done) struct hot hot = { 0 };
	uint32_t n_own = 0; /* functions that only called others are in the paths */
	struct rates rates;
	int r;

	text_table_init(&table, columns);
	table.rigid = (1u << (columns - 2)) - 1;
	table.spare = terminal_get()->is_one ? 1u << (columns - 3) : 0; /* the bar */
	r = hot_init(&hot, tree, DURING);
	if (r < 0)
		return r;
	find_rates(view, tree, samples, &rates);
	add_heads(view, &table);
	while (n_own < hot.count &&
	       hot.functions[n_own].own[DURING] + hot.functions[n_own].own[EARLIER] > 0)
		n_own++;
	for (uint32_t i = 0; i < n_own && i < top; i++)
		add_function(view, &table, &tree->nodes[TREE_ROOT], &hot.functions[i], &rates);
	section_head(out, "functions",
		     "%" PRIu64 " sample%s during, %" PRIu64
		     " %s; the busiest first, with the kernel's work for them",
		     samples->count[DURING], text_s(samples->count[DURING]),
		     samples->count[EARLIER], view_phase(view, EARLIER));
	if (samples->count[DURING] < TEXT_REPORT_FEW_SAMPLES)
		fprintf(out, "  fewer than %d samples during: the percentages are rough\n",
			TEXT_REPORT_FEW_SAMPLES);
	r = text_table_print(&table, 2, out);
	fputs("  CHANGE is of their time per second; = may be chance\n", out);
	if (n_own > top)
		fprintf(out, "  and %" PRIu64 " more (--top N)\n", n_own - top);
	return r;
}

struct path {
	uint64_t own;
	uint32_t node;
};

static int compare_paths(const void *a, const void *b)
{
	const struct path *x = a, *y = b;

	if (x->own != y->own)
		return x->own < y->own ? 1 : -1;
	return x->node < y->node ? -1 : 1;
}

/*
 * Returns the weight of a path that ends at the node: a program's function with the kernel's work
 * for it, or all of a kernel thread. 0: no path ends there.
 */
static uint64_t measure_path(const struct tree *tree, uint32_t node)
{
	const struct tree_node *n = &tree->nodes[node], *below = &tree->nodes[n->parent];

	if (n->step.kind >= TREE_BY)
		return 0;
	if (n->step.kind != STORE_KERNEL)
		return hot_own(tree, node, DURING);
	return n->parent == TREE_ROOT || below->step.kind >= TREE_BY ? n->total[DURING] : 0;
}

static int find_paths(const struct tree *tree, struct path **ret_paths, uint32_t *ret_n)
{
	struct path *paths = calloc(tree->count, sizeof(*paths));
	uint64_t all = tree->nodes[TREE_ROOT].total[DURING];
	uint32_t n = 0;

	if (!paths)
		return -ENOMEM;
	for (uint32_t i = TREE_ROOT + 1; i < tree->count; i++) {
		uint64_t own = measure_path(tree, i);

		if (own && (double)own >= PATH_LEAST * (double)all)
			paths[n++] = (struct path){ own, i };
	}
	qsort(paths, n, sizeof(*paths), compare_paths);
	*ret_paths = paths;
	*ret_n = n;
	return 0;
}

/* Returns the kernel function with most of the path's time; 0: most was in the program. */
static uint32_t find_kernel_leaf(const struct tree *tree, const struct path *path)
{
	uint32_t node = path->node;

	for (;;) {
		uint32_t heaviest = 0;

		for (uint32_t c = tree->nodes[node].child; c; c = tree->nodes[c].sibling)
			if (tree->nodes[c].step.kind == STORE_KERNEL &&
			    tree->nodes[c].total[DURING] > path->own / 2 &&
			    (!heaviest ||
			     tree->nodes[c].total[DURING] > tree->nodes[heaviest].total[DURING]))
				heaviest = c;
		if (!heaviest)
			return node == path->node ? 0 : node;
		node = heaviest;
	}
}

/* Adds " < name", or " < name (3)", if there is space; false: there is none. */
static bool add_name(const struct view *view, uint32_t label, unsigned int times, char **text,
		     unsigned int room)
{
	_cleanup_free_ char *name = strdup(labels_get(&view->labels, label));
	char *longer, again[16] = "";

	if (name && terminal_get()->columns)
		name = text_width_shorten(name, NAME_COLUMNS);
	if (times > 1)
		snprintf(again, sizeof(again), " (%u)", times);
	if (!name ||
	    asprintf(&longer, "%s%s%s%s", *text ? *text : "", *text ? " < " : "", name, again) < 0)
		return false;
	if (*text && text_width(longer) > room) {
		free(longer);
		return false;
	}
	free(*text);
	*text = longer;
	return true;
}

/* Returns how many nodes from this one down have its label: a function that calls itself. */
static unsigned int count_same(const struct tree *tree, uint32_t node)
{
	uint32_t label = tree->nodes[node].step.label;
	unsigned int n = 0;

	for (; node != TREE_ROOT && tree->nodes[node].step.kind < TREE_BY &&
	       tree->nodes[node].step.label == label;
	     node = tree->nodes[node].parent)
		n++;
	return n;
}

/*
 * "do_epoll_wait < epoll_wait < aeApiPoll < ..": up to two lines on a terminal, else all callers.
 */
static char *name_path(const struct view *view, const struct tree *tree, const struct path *path)
{
	unsigned int columns = terminal_columns(0),
		     room = columns ? 2 * (columns - 16) : UINT32_MAX;
	uint32_t leaf = find_kernel_leaf(tree, path), node = path->node;
	char *text = NULL, *cut;

	if (leaf)
		add_name(view, tree->nodes[leaf].step.label, 1, &text, room);
	while (node != TREE_ROOT && tree->nodes[node].step.kind < TREE_BY) {
		unsigned int same = count_same(tree, node);

		if (!add_name(view, tree->nodes[node].step.label, same, &text, room)) {
			if (!text || asprintf(&cut, "%s < ..", text) < 0)
				return text;
			free(text);
			return cut;
		}
		while (same--)
			node = tree->nodes[node].parent;
	}
	return text;
}

int text_report_functions_paths(const struct view *view, const struct tree *tree, const char *what,
				FILE *out)
{
	uint64_t all = tree->nodes[TREE_ROOT].total[DURING];
	_cleanup_free_ struct path *paths = NULL;
	uint32_t n;
	int r = find_paths(tree, &paths, &n);

	if (r < 0 || !n)
		return r;
	section_head(out, "call paths", "where %s, the heaviest first", what);
	for (uint32_t i = 0; i < MIN(n, (uint32_t)PATHS_TOP); i++) {
		_cleanup_free_ char *name = name_path(view, tree, &paths[i]);

		fprintf(out, "  %5.1f %%  %s\n", 100 * (double)paths[i].own / (double)all,
			name ? name : "-");
	}
	return 0;
}
