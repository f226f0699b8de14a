/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * events.c: an event file of hostile lines: read, kept, folded, drawn and listed within 8 MiB. A
 * line that the reader takes is JSON for json-c too, the folded stacks have as many samples as were
 * read, and the picture holds no markup but its own.
 */
#include <json-c/json.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/events/choose.h"
#include "ctl/events/reader.h"
#include "ctl/render/flamegraph.h"
#include "ctl/render/folded.h"
#include "ctl/render/pprof.h"
#include "ctl/render/text_report.h"
#include "ctl/view/hot.h"
#include "shared/tools/cleanup.h"

#define NESTING (JSON_READER_NESTING + 1)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static bool pass_frames(void *context, struct json_reader *s, const struct event *event)
{
	return json_reader_skip(s);
}

/* What json-c takes beyond the standard does not count: only that it takes the same lines. */
static void compare(const char *line, size_t bytes)
{
	json_tokener *tokener;
	struct event_fault fault;
	struct event event;
	json_object *object;

	if (!event_read(line, bytes, pass_frames, NULL, &event, &fault)) {
		if (fault.at > bytes || !fault.fault)
			abort();
		return;
	}
	tokener = json_tokener_new_ex(NESTING);
	object = json_tokener_parse_ex(tokener, line, (int)bytes);
	if (json_tokener_get_error(tokener) != json_tokener_success || !object)
		abort();
	json_object_put(object);
	json_tokener_free(tokener);
}

static void read_all(struct reader *r, const char *data, size_t bytes)
{
	uint64_t number = 0;

	while (bytes) {
		const char *end = memchr(data, '\n', bytes);
		struct lines_line line = { .text = data, .whole = end != NULL };

		line.bytes = end ? (size_t)(end - data) : bytes;
		compare(line.text, line.bytes);
		if (reader_line(r, &line, ++number) < 0)
			return;
		data += line.bytes + line.whole;
		bytes -= line.bytes + line.whole;
	}
}

/* Text of the file may neither begin an element nor drive a terminal. */
static void check_svg(const char *text)
{
	unsigned int scripts = 0;

	for (const char *at = text; *at; at++) {
		scripts += !strncmp(at, "<script>", 8);
		if ((unsigned char)*at < 0x20 && *at != '\n')
			abort();
	}
	if (scripts != 1)
		abort();
}

static void draw(struct view *view, struct tree *tree)
{
	_cleanup_free_ char *text = NULL, *head = NULL, *title = NULL, *subtitle = NULL;
	struct svg svg = {
		.tree = tree,
		.labels = &view->labels,
		.columns = { "before", "during" },
		.n_panels = 1,
	};
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	head = flamegraph_head(view, tree, VIEW_ALL, 0, "all");
	subtitle = flamegraph_subtitle(view, VIEW_ALL);
	title = view_title(view);
	svg.title = title;
	svg.subtitle = subtitle;
	svg.panels[0] = (struct svg_panel){ head, 0, tree->nodes[TREE_ROOT].total[0] };
	svg_write(&svg, out);
	fclose(out);
	check_svg(text);
}

static void list(struct view *view, struct tree *tree, FILE *out)
{
	_cleanup_(hot_done) struct hot hot = { 0 };

	if (hot_init(&hot, tree, 0) < 0)
		return;
	for (uint32_t i = 0; i < hot.count; i++)
		if (hot.functions[i].total[0] > tree->nodes[TREE_ROOT].total[0] ||
		    hot.functions[i].self[0] > hot.functions[i].total[0])
			abort();
	(void)pprof_write(view, out);
}

/* The report has no character that drives a terminal, for any lines. */
static void report(struct input *input)
{
	_cleanup_(view_done) struct view view = { 0 };
	_cleanup_free_ char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	struct options options = { .by = "none", .out = out, .err = out };

	if (view_init(&view, &options, input, VIEW_NS) == 0)
		(void)text_report_write(&view, false, 20, out);
	(void)text_report_write(&view, true, 20, out);
	fclose(out);
	for (size_t i = 0; i < bytes; i++)
		if (((unsigned char)text[i] < 0x20 && text[i] != '\n') || text[i] == 0x7f)
			abort();
}

static void fold(struct input *input, FILE *out)
{
	_cleanup_(view_done) struct view view = { 0 };
	_cleanup_(tree_done) struct tree tree = { 0 };
	struct options options = { .by = "comm", .out = out, .err = out };
	uint64_t sum = 0;

	if (view_init(&view, &options, input, VIEW_COUNT) < 0 ||
	    tree_init(&tree, &input->store.budget) < 0 || view_fill(&view, VIEW_ALL, &tree) < 0 ||
	    tree_sort(&tree, &view.labels) < 0)
		return;
	folded_print(&tree, &view.labels, true, out);
	for (uint32_t i = 0; i < input->store.keys.count; i++)
		sum = store_sum(sum, input->store.values[i].count);
	if (sum != tree.nodes[TREE_ROOT].total[0])
		abort();
	draw(&view, &tree);
	list(&view, &tree, out);
}

/* One session is left, with its own stacks. */
static void choose(struct input *input, FILE *out)
{
	struct options options = { .by = "comm", .out = out, .err = out };
	uint32_t left, shown = 0, keys = input->store.keys.count;

	if (choose_sessions(&options, &input->select, &input->store, 1, &left) < 0)
		return;
	for (uint32_t i = 0; i < input->store.ids.count; i++)
		shown += input->store.sessions[i].files != 0;
	if (shown != 1 || input->store.keys.count > keys)
		abort();
	fold(input, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	_cleanup_free_ char *text = NULL;
	struct input input = { .select = { .until_ns = UINT64_MAX } };
	size_t text_bytes;
	_cleanup_fclose_ FILE *out = open_memstream(&text, &text_bytes);

	if (store_init(&input.store, 8u << 20) < 0 ||
	    reader_init(&input.reader, &input.store, &input.select, out) < 0)
		abort();
	read_all(&input.reader, (const char *)data, bytes);
	fold(&input, out);
	report(&input);
	choose(&input, out);
	input_done(&input);
	return 0;
}
