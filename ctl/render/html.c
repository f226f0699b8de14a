/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/html.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/cli/command_exit.h"
#include "ctl/cli/terminal.h"
#include "ctl/cli/text.h"
#include "ctl/render/flamegraph.h"
#include "ctl/render/html_css.h"
#include "ctl/render/html_histograms.h"
#include "ctl/render/html_text.h"
#include "ctl/render/text_report.h"
#include "ctl/render/text_report_asides.h"
#include "ctl/render/text_report_stalls.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define COLUMNS	   120
#define HEIGHT_KEY " height=\""
#define NARROW_KEY " data-narrow=\""

/* The state for the sections of one session. */
struct page {
	struct view *view;
	uint32_t session;
	FILE *out;
	int error;	     /* the first error; 0: none */
	unsigned int graphs; /* number of graphs so far, in all sessions, for their ids */
};

/* The two flame graphs, which are next to each other. */
static const struct graph {
	const char *signal, *what, *more;
	bool busy; /* without threads that wait for work, which would fill the graph */
} graphs[] = {
	{ "oncpu", "What ran", "", false },
	{ "offcpu", "What waited", ", without waits for work or on a condition", true },
};

/* Returns the picture's height, from its first tag. */
static unsigned long find_height(const char *svg, const char *key)
{
	const char *at = strstr(svg, key);

	return at ? strtoul(at + strlen(key), NULL, 10) : 0;
}

/* Closes a text in memory, written with the result `r`. */
static int end_text(FILE *to, int r)
{
	return fclose(to) == EOF && r >= 0 ? -ENOMEM : r;
}

/*
 * Embeds a picture as a separate document, so that its style and its script are not the page's. A
 * browser without scripts shows it too.
 */
static int put_graph(struct page *p, uint32_t signal, const struct graph *graph)
{
	_cleanup_free_ char *svg = NULL;
	size_t bytes;
	FILE *to = open_memstream(&svg, &bytes);
	int r;

	if (!to)
		return -ENOMEM;
	view_only(p->view, signal, graph->busy);
	r = flamegraph_draw(p->view, graph->what, false, to);
	r = end_text(to, r);
	if (r < 0)
		return r;
	fprintf(p->out,
		"<style>@media (max-width: 699px) { #graph%u { height: %lupx; "
		"} }</style>\n",
		p->graphs, find_height(svg, NARROW_KEY) + 20);
	fprintf(p->out,
		"<figure><figcaption>%s%s</figcaption>\n<iframe id=\"graph%u\" title=\"%s\" "
		"height=\"%lu\" ",
		graph->what, graph->more, p->graphs++, graph->what,
		find_height(svg, HEIGHT_KEY) + 20);
	fputs("sandbox=\"allow-scripts\" src=\"data:image/svg+xml;base64,", p->out);
	html_text_base64(svg, bytes, p->out);
	fputs("\"></iframe></figure>\n", p->out);
	return 0;
}

static void put_graphs(void *context)
{
	struct page *p = context;

	if (store_first(&p->view->input->store, p->session) == STORE_NONE)
		return;
	fputs("<section class=\"graphs\">\n", p->out);
	for (size_t i = 0; i < ARRAY_SIZE(graphs) && p->error == 0; i++) {
		uint32_t signal;

		view_choose(p->view, p->session);
		signal = view_find_signal(p->view, graphs[i].signal);
		if (signal != STORE_NONE)
			p->error = put_graph(p, signal, &graphs[i]);
	}
	fputs("</section>\n", p->out);
}

static int put_session(struct page *p, uint64_t top)
{
	_cleanup_free_ char *report = NULL;
	size_t bytes;
	FILE *to = open_memstream(&report, &bytes);
	int r;

	if (!to)
		return -ENOMEM;
	r = text_report_write_one(p->view, p->session, top, to);
	r = end_text(to, r);
	if (r < 0)
		return r;
	fputs("<article>\n", p->out);
	r = html_text_sections(report, COLUMNS, "findings", put_graphs, p, p->out);
	if (r == 0 && p->error == 0)
		r = html_histograms_put(&p->view->input->store, p->session, p->out);
	fputs("</article>\n", p->out);
	return r < 0 ? r : p->error;
}

static void put_nothing(void *context)
{
}

/*
 * Writes the parts that belong to no single session: the stalls before the sessions, the asides
 * after them.
 */
static int put_around(struct input *input, bool before, FILE *out)
{
	_cleanup_free_ char *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);
	int r;

	if (!to)
		return -ENOMEM;
	r = before ? text_report_stalls(&input->store, to)
		   : text_report_asides(&input->reader.asides, &input->store, to);
	r = end_text(to, r);
	if (r < 0)
		return r;
	return html_text_sections(text, COLUMNS, NULL, put_nothing, NULL, out);
}

/* Writes the title if the user gave one; else the first section has the headline. */
static void put_head(const char *title, bool asked, FILE *out)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n", out);
	fprintf(out,
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"style-src 'unsafe-inline'; script-src 'sha256-%s'; frame-src data:\">\n",
		svg_script_hash());
	fputs("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
	      out);
	html_text_put(title, strlen(title), out);
	fprintf(out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n", html_css);
	if (!asked)
		return;
	fputs("<h1>", out);
	html_text_put(title, strlen(title), out);
	fputs("</h1>\n", out);
}

/* Writes the sections as for a terminal of COLUMNS columns. */
static int put_body(const struct options *options, struct view *view, FILE *out)
{
	static const struct terminal drawn = {
		.columns = COLUMNS, .is_one = true, .colours = true, .utf8 = true
	};
	const struct terminal before = *terminal_get();
	const struct store *s = &view->input->store;
	struct page page = { .view = view, .out = out };
	int r;

	terminal_use(&drawn);
	r = put_around(view->input, true, out);
	for (page.session = 0; page.session < s->ids.count && r == 0; page.session++)
		if (s->sessions[page.session].files)
			r = put_session(&page, options->top);
	if (r == 0)
		r = put_around(view->input, false, out);
	terminal_use(&before);
	return r;
}

/* Prints the whole page, or nothing. */
static int write_page(const struct options *options, struct view *view)
{
	_cleanup_free_ char *title = options->title
					     ? text_tame(options->title, strlen(options->title))
					     : view_title(view);
	_cleanup_free_ char *page = NULL;
	size_t bytes;
	FILE *to = title ? open_memstream(&page, &bytes) : NULL;
	int r;

	view->n_by = 0;
	if (!to)
		return -ENOMEM;
	put_head(title, options->title, to);
	r = put_body(options, view, to);
	fprintf(to, "<footer>Made by trocar %s.</footer>\n</body>\n</html>\n", TROCAR_VERSION);
	r = end_text(to, r);
	if (r < 0)
		return r;
	fwrite(page, 1, bytes, options->out);
	return 0;
}

int html_call(const struct options *options, const char *const *arguments)
{
	_cleanup_(input_done) struct input input = { 0 };
	int r;

	if (isatty(fileno(options->out))) {
		fputs("trocar: html writes a page for a browser: send it to a file\n",
		      options->err);
		return COMMAND_USAGE;
	}
	r = input_read(options, arguments, &input);
	/* A session may have no stacks. Unselected stacks are reported as missing. */
	if (r == 0 && input.reader.unselected)
		r = input_need_stacks(options, &input);
	return r ? r : view_print(options, &input, VIEW_NS, write_page);
}
