/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event_line.h: writes one event line: the common keys, then the caller's, then queues the line.
 * Any thread; each line has its own writer. docs/events.md explains each key.
 */
#ifndef TROCAR_CONSUMER_OUTPUT_EVENT_LINE_H
#define TROCAR_CONSUMER_OUTPUT_EVENT_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/cgroup/container.h"
#include "consumer/output/host.h"
#include "consumer/output/output_queue.h"
#include "shared/rules/rules.h"

struct jsonw;

/* The destination of lines and the values common to all of them; constant after the start. */
struct event_lines {
	const struct host *host;
	struct output *output;
	size_t max_bytes; /* limit of a line, '\n' included */
};

/* The rule and the cgroup of a line; every field may be absent (NULL or 0). */
struct event_subject {
	const struct rule *rule;
	uint32_t generation;
	const char *cgroup;
	uint64_t cgroup_id;
	struct container container; /* container_parse(cgroup) */
	uint64_t session;
};

/*
 * Starts a line of `type` in `w`, which it initialises; call event_line_end with `w` in every case.
 * `subject` may be NULL.
 */
void event_line_begin(const struct event_lines *lines, struct jsonw *w, const char *type,
		      const struct event_subject *subject);

/*
 * Ends the line, queues it and releases `w`. Returns true if the line was queued; false if the
 * queue dropped it, the line is too long, or there was no memory.
 */
bool event_line_end(const struct event_lines *lines, struct jsonw *w);

/*
 * Writes an error line: code, one sentence, and a remedy for the operator. `fill` adds numbers;
 * NULL: none.
 */
void event_line_error(const struct event_lines *lines, const struct event_subject *subject,
		      const char *code, const char *hint,
		      void (*fill)(void *context, struct jsonw *w), void *context,
		      const char *format, ...) __attribute__((format(printf, 7, 8)));

/* 16 hex digits and the NUL. */
#define SESSION_TEXT_BYTES 17
void event_line_session_text(uint64_t session, char text[SESSION_TEXT_BYTES]);

#endif
