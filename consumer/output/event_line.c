/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/output/event_line.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"

void event_line_session_text(uint64_t session, char text[SESSION_TEXT_BYTES])
{
	snprintf(text, SESSION_TEXT_BYTES, "%016llx", (unsigned long long)session);
}

static void write_subject(struct jsonw *w, const struct event_subject *subject)
{
	char session[SESSION_TEXT_BYTES];

	if (subject->session) {
		event_line_session_text(subject->session, session);
		jsonw_string_n(w, "session", session, sizeof(session) - 1);
	}
	if (subject->rule) {
		jsonw_string(w, "rule", subject->rule->name);
		jsonw_u64(w, "generation", subject->generation);
	}
	if (subject->cgroup)
		jsonw_string(w, "cgroup", subject->cgroup);
	jsonw_u64_nonzero(w, "cgroup_id", subject->cgroup_id);
	if (subject->cgroup)
		container_write_ids(&subject->container, subject->cgroup, w);
	if (subject->rule && subject->rule->n_labels) {
		jsonw_object(w, "labels");
		for (uint32_t i = 0; i < subject->rule->n_labels; i++)
			jsonw_string_key(w, subject->rule->labels[i].key,
					 subject->rule->labels[i].value);
		jsonw_object_end(w);
	}
}

void event_line_begin(const struct event_lines *lines, struct jsonw *w, const char *type,
		      const struct event_subject *subject)
{
	char text[CLOCK_TEXT_BYTES];

	jsonw_init(w, lines->max_bytes - 1);
	clock_text(clock_real_ns(), text);
	jsonw_object(w, NULL);
	jsonw_u64(w, "v", 1);
	jsonw_string(w, "type", type);
	jsonw_string_n(w, "ts", text, sizeof(text) - 1);
	jsonw_u64(w, "mono_ns", clock_mono_ns());
	jsonw_string(w, "host", lines->host->name);
	jsonw_string(w, "boot_id", lines->host->boot_id);
	if (subject)
		write_subject(w, subject);
}

/* Counts the line as dropped. Returns false. */
static bool give_up(const struct event_lines *lines)
{
	output_queue_count_dropped(lines->output, 1);
	return false;
}

static bool put_line(const struct event_lines *lines, struct jsonw *w)
{
	jsonw_object_end(w);
	if (jsonw_end(w) < 0)
		return give_up(lines);
	/* The writer's limit is one byte below max_bytes, which leaves space for the newline. */
	if (w->space <= w->bytes) {
		char *more = realloc(w->data, w->bytes + 1);

		if (!more)
			return give_up(lines);
		w->data = more;
		w->space = w->bytes + 1;
	}
	w->data[w->bytes++] = '\n';
	return output_queue_put(lines->output, w->data, w->bytes, 1);
}

bool event_line_end(const struct event_lines *lines, struct jsonw *w)
{
	bool queued = put_line(lines, w);

	jsonw_done(w);
	return queued;
}

void event_line_error(const struct event_lines *lines, const struct event_subject *subject,
		      const char *code, const char *hint,
		      void (*fill)(void *context, struct jsonw *w), void *context,
		      const char *format, ...)
{
	char message[512];
	struct jsonw w;
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	event_line_begin(lines, &w, "error", subject);
	jsonw_string(&w, "code", code);
	jsonw_string(&w, "message", message);
	jsonw_string(&w, "hint", hint);
	if (fill)
		fill(context, &w);
	event_line_end(lines, &w);
}
