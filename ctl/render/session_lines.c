/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/session_lines.h"

#include <errno.h>

#include "ctl/cli/member_text.h"
#include "shared/json/json_reader.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

void session_lines_fail(struct session_lines *s, int error)
{
	if (s->error == 0)
		s->error = error;
}

const struct json_node *session_lines_read(struct session_lines *s, uint32_t text,
					   struct json_tree *ret_tree)
{
	struct json_fault fault;
	const char *data;
	size_t bytes;

	if (text == STORE_NONE)
		return NULL;
	data = pool_get(&s->store->texts, text, &bytes);
	if (json_tree_read(data, bytes, JSON_READER_NESTING, ret_tree, &fault) == 0)
		return ret_tree->nodes;
	session_lines_fail(s, -ENOMEM);
	return NULL;
}

void session_lines_open(struct session_lines *s, const struct store *store, uint32_t number,
			FILE *out)
{
	const struct store_session *session = &store->sessions[number];

	*s = (struct session_lines){ .store = store, .session = session, .out = out };
	s->start = session_lines_read(s, session->start, &s->trees[0]);
	s->end = session_lines_read(s, session->end, &s->trees[1]);
	s->pressure = session_lines_read(s, session->pressure, &s->trees[2]);
}

void session_lines_done(struct session_lines *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->trees); i++)
		json_tree_done(&s->trees[i]);
}

const struct json_node *session_lines_next(struct session_lines_step *step)
{
	json_tree_done(&step->tree);
	if (step->next >= MIN(step->list->count, step->top))
		return NULL;
	return session_lines_read(step->session, step->list->items[step->next++], &step->tree);
}

void session_lines_end(struct session_lines_step *step)
{
	json_tree_done(&step->tree);
}

void session_lines_put(struct session_lines *s, const struct store_lines *list, const char *form)
{
	const struct json_node *line;

	session_lines_for_each (line, s, list, STORE_LINES)
		member_text_put(form, line, s->out);
}

void session_lines_head(struct session_lines *s, const char *on, const char *off)
{
	const struct store_session *session = s->session;
	_cleanup_free_ char *id = store_tame(s->store, session->id),
			    *rule = store_tame(s->store, session->rule),
			    *cgroup = store_tame(s->store, session->cgroup),
			    *headline = store_tame(s->store, session->headline);
	char when[CLOCK_TEXT_BYTES];

	if (!id || !rule || !cgroup || !headline) {
		session_lines_fail(s, -ENOMEM);
		return;
	}
	clock_text(session->time_ns, when);
	fprintf(s->out, "%s%s%s\nsession %s, rule %s, %.19s UTC, %s\n", on,
		s->end ? headline
		       : "This session has no end here: it still ran, or its lines were cut.",
		off, id, rule, when, cgroup);
}
