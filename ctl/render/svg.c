/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/svg.h"

#include <inttypes.h>
#include <string.h>

#include "ctl/cli/text.h"
#include "ctl/render/flamegraph_css.h"
#include "ctl/render/flamegraph_js.h"
#include "shared/tools/macro.h"
#include "shared/tools/utf8.h"

/* In units of the picture, which is redrawn for the window's width. */
#define WIDTH	    1200
#define MARGIN	    10
#define GAP	    16
#define ROW	    18
#define TEXT_DOWN   13	 /* from the top of a row to the base of its text */
#define CHARACTER   7.23 /* of 12px monospace; flamegraph.js has it too */
#define TITLE_CHARS 130	 /* of 16px in WIDTH */
#define TITLE_LINES 3
#define TEXT_ROW    16 /* of small text in several lines */
#define KEY_ROW	    20 /* of a legend in several rows */
#define SEARCH_ROW  32 /* of the search field, if it has its own row */
#define HEAD	    40 /* from the bottom of a panel to the top of the next, if they are in a column */
#define NARROW	    0.25 /* narrower frames are not drawn */

struct drawing {
	const struct svg *svg;
	FILE *out;
	double width;	 /* of a panel */
	uint32_t rows;	 /* of the deepest drawn frame */
	uint64_t narrow; /* frames that are not drawn */
};

/* XML 1.0 has no noncharacters U+FFFE and U+FFFF; control characters were already made tame. */
static bool is_xml(const char *at, size_t bytes)
{
	return bytes != 3 || memcmp(at, "\xef\xbf", 2) != 0 ||
	       ((unsigned char)at[2] != 0xbe && (unsigned char)at[2] != 0xbf);
}

/* Writes at most `chars` characters of a text, the last one an ellipsis if there are more. */
static void put_text(const char *text, size_t chars, FILE *out)
{
	size_t all = 0, n;

	for (const char *at = text; *at; at++)
		all += (*at & 0xc0) != 0x80;
	for (size_t i = 0; *text; text += n, i++) {
		n = utf8_sequence(text, strnlen(text, 4));
		n = n ? n : 1;
		if (all > chars && i + 1 >= chars) {
			fputs("\xe2\x80\xa6", out);
			return;
		}
		if (*text == '<')
			fputs("&lt;", out);
		else if (*text == '>')
			fputs("&gt;", out);
		else if (*text == '&')
			fputs("&amp;", out);
		else if (*text == '"')
			fputs("&quot;", out);
		else if (is_xml(text, n))
			fwrite(text, 1, n, out);
		else
			fputs("\xef\xbf\xbd", out);
	}
}

/* Writes a title in lines of whole words; returns the number of lines. */
static unsigned int put_title(const char *title, FILE *out)
{
	unsigned int line = 0;

	while (*title && line < TITLE_LINES) {
		size_t bytes = strlen(title);
		char text[4 * TITLE_CHARS + 1];

		if (bytes > TITLE_CHARS && line + 1 < TITLE_LINES) {
			for (bytes = TITLE_CHARS; bytes > TITLE_CHARS / 2; bytes--)
				if (title[bytes] == ' ')
					break;
			while (bytes && (title[bytes] & 0xc0) == 0x80)
				bytes--;
		}
		snprintf(text, sizeof(text), "%.*s", (int)bytes, title);
		fprintf(out, "<text class=\"title\" x=\"%d\" y=\"%u\">", MARGIN, 26 + 20 * line);
		put_text(text, TITLE_CHARS, out);
		fputs("</text>\n", out);
		title += bytes;
		title += strspn(title, " ");
		line++;
	}
	return line;
}

static void put_value(const struct svg *svg, uint64_t value, FILE *out)
{
	char text[TEXT_UNIT_BYTES];

	if (svg->unit == VIEW_NS)
		fputs(text_duration_us(value / NSEC_PER_USEC, text), out);
	else
		fprintf(out, "%" PRIu64 " sample%s", value, text_s(value));
}

static double compute_share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

double svg_change(const struct svg *svg, const struct tree_node *node)
{
	double a = (double)node->total[0] * svg->scale[0];
	double b = (double)node->total[1] * svg->scale[1];

	return a + b > 0 ? (b - a) / MAX(a, b) : 0;
}

/* Writes the name, then its value in each column. */
static void put_tip(const struct svg *svg, const struct tree_node *node, FILE *out)
{
	fputs("<title>", out);
	put_text(labels_get(svg->labels, node->step.label), SIZE_MAX, out);
	for (unsigned int c = 0; c < TREE_COLUMNS && svg->columns[c]; c++) {
		fputc('\n', out);
		put_text(svg->columns[c], SIZE_MAX, out);
		fputs(": ", out);
		put_value(svg, node->total[c], out);
		fprintf(out, ", %.1f %%",
			100 * compute_share(node->total[c], svg->tree->nodes[TREE_ROOT].total[c]));
		if (node->self[c]) {
			fputs(", itself ", out);
			put_value(svg, node->self[c], out);
		}
	}
	fputs("</title>", out);
}

/* Classes of flamegraph.css by the threads' state, by enum store_state. */
static const char *const states[] = {
	[STORE_RUNS] = "qc",
	[STORE_RUNNABLE] = "qq",
	[STORE_WAITS_IO] = "qi",
	[STORE_WAITS_MEMORY] = "qm",
	[STORE_WAITS_LOCK] = "ql",
	[STORE_WAITS_SLEEP] = "qt",
	[STORE_WAITS_IDLE] = "qn",
	[STORE_WAITS_PIPE] = "qp",
	[STORE_WAITS_SOCKET] = "qs",
	[STORE_WAITS_CHILD] = "qd",
	[STORE_WAITS_FAULT] = "qf",
	[STORE_WAITS_OTHER] = "qo",
	[STORE_WAITS_CONDITION] = "qn",
};
_Static_assert(ARRAY_SIZE(states) == STORE_STATE_COUNT_, "a colour per state");

#define MIXED "qx"

/* Returns the class of the common state of the node's threads. */
static const char *find_state_class(const struct tree_node *node)
{
	return node->state == TREE_MIXED || !node->state ? MIXED : states[node->state - 1];
}

static void put_change_class(const struct svg *svg, const struct tree_node *node, FILE *out)
{
	double change = svg_change(svg, node), size = change < 0 ? -change : change;

	if (size < 0.1)
		fputs("e0", out);
	else
		fprintf(out, "%c%d", change > 0 ? 'm' : 'w', size > 0.6 ? 0 : size > 0.3 ? 1 : 2);
}

/* Classes of flamegraph.css: by kind and name, by state of the threads, or by growth. */
static void put_class(const struct svg *svg, const struct tree_node *node, FILE *out)
{
	static const char kinds[] = { 'u', 'k', 'r', 'j' };
	const char *name = labels_get(svg->labels, node->step.label);
	unsigned int shade = 0;

	for (; *name; name++)
		shade = shade * 31 + (unsigned char)*name;
	if (node->step.kind == TREE_BY)
		fputs("l0", out);
	else if (svg->difference)
		put_change_class(svg, node, out);
	else if (svg->states)
		fprintf(out, "%s d%u", find_state_class(node), shade % 4);
	else
		fprintf(out, "%c%u", kinds[node->step.kind], shade % 4);
}

static void put_frame(struct drawing *d, const struct tree_node *node, uint64_t start,
		      uint64_t value, uint32_t row, const struct svg_panel *panel)
{
	double x = compute_share(start, panel->total) * d->width;
	double width = compute_share(value, panel->total) * d->width;
	double chars = (width - 6) / CHARACTER;
	uint32_t y = ROW * (d->svg->inverted ? d->rows - 1 - row : row);

	fprintf(d->out, "<g class=\"f\" data-f=\"%" PRIu64 " %" PRIu64 " %u\">", start, value, row);
	put_tip(d->svg, node, d->out);
	fputs("<rect class=\"", d->out);
	put_class(d->svg, node, d->out);
	fprintf(d->out,
		"\" x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\"/><text x=\"%.2f\" y=\"%u\">",
		x, y, width, ROW - 1, x + 3, y + TEXT_DOWN);
	if (chars >= 3)
		put_text(labels_get(d->svg->labels, node->step.label), (size_t)chars, d->out);
	fputs("</text></g>\n", d->out);
}

/* Walks a panel; with `draw` false it only counts the depth and the nodes that are too narrow. */
static void walk_panel(struct drawing *d, const struct svg_panel *panel, bool draw)
{
	const struct tree *tree = d->svg->tree;
	uint64_t at[TREE_PATH_MAX + 2] = { 0 }; /* by depth: where the next frame begins */
	uint32_t depth = 0, node = tree_next(tree, TREE_ROOT, true, &depth);

	while (node) {
		uint64_t value = tree->nodes[node].total[panel->column], start = at[depth];
		bool wide = compute_share(value, panel->total) * d->width >= NARROW;

		at[depth] = store_sum(start, value);
		at[depth + 1] = start;
		if (wide && draw)
			put_frame(d, &tree->nodes[node], start, value, depth - 1, panel);
		else if (wide)
			d->rows = MAX(d->rows, depth);
		else if (value && !draw)
			d->narrow++;
		node = tree_next(tree, node, wide, &depth);
	}
}

/* Writes one entry of the legend, `data-w` wide; returns the begin of the next one. */
static unsigned int put_key(const char *class, const char *word, unsigned int x, unsigned int y,
			    FILE *out)
{
	unsigned int width = 40 + 7 * (unsigned int)strlen(word);

	fprintf(out,
		"<g class=\"key\" data-w=\"%u\" transform=\"translate(%u %u)\"><rect class=\"%s\" "
		"y=\"-10\" width=\"12\" height=\"12\" rx=\"2\"/><text class=\"quiet\" x=\"17\">%s"
		"</text></g>\n",
		width, x, y, class, word);
	return x + width;
}

/* Writes the states that are in the picture. */
static unsigned int put_states(const struct svg *svg, unsigned int y, FILE *out)
{
	bool there[STORE_STATE_COUNT_] = { false };
	unsigned int x = MARGIN;

	for (uint32_t i = 0; i < svg->tree->count; i++) {
		uint32_t state = svg->tree->nodes[i].state;

		if (state && state != TREE_MIXED)
			there[state - 1] = true;
	}
	for (unsigned int i = 0; i < STORE_STATE_COUNT_; i++)
		if (there[i])
			x = put_key(states[i], store_state_word(i), x, y, out);
	return svg->tree->nodes[TREE_ROOT].state == TREE_MIXED
		       ? put_key(MIXED, "several of them", x, y, out)
		       : x;
}

static void put_legend(const struct svg *svg, unsigned int y, FILE *out)
{
	static const char *const kinds[][2] = {
		{ "u0", "program" }, { "k0", "kernel" }, { "r0", "runtime" }, { "j0", "JIT" }
	};
	static const char *const changes[][2] = { { "m0", "more" },
						  { "m2", "a little more" },
						  { "e0", "as before" },
						  { "w2", "a little less" },
						  { "w0", "less" } };
	const char *const(*rows)[2] = svg->difference ? changes : kinds;
	size_t n = svg->difference ? ARRAY_SIZE(changes) : ARRAY_SIZE(kinds);
	unsigned int x = MARGIN;

	if (svg->states && !svg->difference)
		x = put_states(svg, y, out);
	else
		for (size_t i = 0; i < n; i++)
			x = put_key(rows[i][0], rows[i][1], x, y, out);
	fprintf(out,
		"<g id=\"find\" class=\"off\"><foreignObject id=\"field\" x=\"%u\" y=\"%u\" "
		"width=\"260\" height=\"26\"><input xmlns=\"http://www.w3.org/1999/xhtml\" id=\"search\" "
		"type=\"search\" placeholder=\"search ( / ), a regular expression\" "
		"aria-label=\"search\"/></foreignObject></g>\n"
		"<text id=\"reset\" class=\"button off\" x=\"%u\" y=\"%u\">show all (Esc)</text>\n",
		x + 10, y - 17, x + 290, y);
}

static void put_panel(struct drawing *d, unsigned int i, unsigned int y)
{
	const struct svg_panel *panel = &d->svg->panels[i];

	fprintf(d->out,
		"<g class=\"panel\" data-total=\"%" PRIu64
		"\" data-y=\"%u\" transform=\"translate(%.2f %u)\">\n<text class=\"head\" y=\"-7\">",
		panel->total, y, MARGIN + i * (d->width + GAP), y);
	put_text(panel->head, SIZE_MAX, d->out);
	fputs("</text>\n", d->out);
	walk_panel(d, panel, true);
	fputs("</g>\n", d->out);
}

const char *svg_script_hash(void)
{
	return FLAMEGRAPH_JS_SHA256;
}

/*
 * Returns the height with the panels in a column, a title of one line, and two lines for the
 * subtitle, the legend and the foot: flamegraph.js draws this layout in a narrow window.
 */
static unsigned int compute_narrow_height(const struct drawing *d)
{
	unsigned int head = 26 + 20 + 2 * TEXT_ROW + 10 + KEY_ROW + SEARCH_ROW;

	return head + d->svg->n_panels * (HEAD + d->rows * ROW) + 20 + 3 * TEXT_ROW;
}

void svg_write(const struct svg *svg, FILE *out)
{
	struct drawing d = { .svg = svg, .out = out };
	unsigned int lines =
		1 + (strlen(svg->title) > TITLE_CHARS) + (strlen(svg->title) > 2 * TITLE_CHARS);
	unsigned int y = 26 + 20 * lines, top = y + 66, height;

	d.width = (WIDTH - 2 * MARGIN - GAP * (svg->n_panels - 1)) / (double)svg->n_panels;
	for (unsigned int i = 0; i < svg->n_panels; i++)
		walk_panel(&d, &svg->panels[i], false);
	height = top + d.rows * ROW + 30;
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/"
		"svg\" width=\"%d\" height=\"%u\" viewBox=\"0 0 %d %u\" "
		"preserveAspectRatio=\"xMinYMin\" data-narrow=\"%u\" data-rows=\"%u\">\n<title>",
		WIDTH, height, WIDTH, height, compute_narrow_height(&d), d.rows);
	put_text(svg->title, SIZE_MAX, out);
	fprintf(out, "</title>\n<style><![CDATA[\n%s]]></style>\n", flamegraph_css);
	fputs("<g id=\"title\">", out);
	put_title(svg->title, out);
	fprintf(out, "</g><g id=\"under\"><text class=\"quiet\" x=\"%d\" y=\"%u\">", MARGIN, y);
	put_text(svg->subtitle, SIZE_MAX, out);
	fputs("</text></g>\n", out);
	put_legend(svg, y + 26, out);
	for (unsigned int i = 0; i < svg->n_panels; i++)
		put_panel(&d, i, top);
	fprintf(out, "<g id=\"foot\"><text class=\"quiet\" x=\"%d\" y=\"%u\">", MARGIN,
		height - 10);
	if (d.narrow)
		fprintf(out, "%" PRIu64 " frame%s narrower than %.2f %% %s not drawn. ", d.narrow,
			text_s(d.narrow), 100 * NARROW / d.width, d.narrow == 1 ? "is" : "are");
	fprintf(out, "Made by trocar %s.</text></g>\n<script><![CDATA[\n%s]]></script>\n</svg>\n",
		TROCAR_VERSION, flamegraph_js);
}
