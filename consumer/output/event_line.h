/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event_line.h: one event line: the keys that every line has, then the caller's, then the queue.
 * Any thread; each line is its own writer. docs/events.md says what each key means.
 */
#ifndef TROCAR_CONSUMER_OUTPUT_EVENT_LINE_H
#define TROCAR_CONSUMER_OUTPUT_EVENT_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/cgroup/container.h"
#include "consumer/output/host.h"
#include "consumer/output/output_queue.h"
#include "shared/json/jsonw.h"
#include "shared/rules/rules.h"

/* Where lines go and what they all say; never changes after the start. */
struct lines {
	const struct host *host;
	struct output *output;
	size_t max_bytes; /* of a line, '\n' included */
};

/* The rule and the cgroup of a line; every field may be absent (NULL or 0). */
struct event_subject {
	const struct rule *rule;
	uint32_t generation;
	const char *cgroup;
	uint64_t cgroup_id;
	struct container container; /* as container_parse(cgroup) */
	uint64_t session;
};

/*
 * Starts a line of `type` in `w` (initialised here; give it to event_line_end in every case).
 * `subject` may be NULL.
 */
void event_line_begin(const struct lines *lines, struct jsonw *w, const char *type,
		      const struct event_subject *subject);

/*
 * Ends the line and queues it; releases `w`. Returns true when queued; false when it was dropped by
 * the queue, is longer than a line may be, or there was no memory.
 */
bool event_line_end(const struct lines *lines, struct jsonw *w);

/* Error lines: code, one sentence, and what the operator can do. `fill` adds numbers, may be NULL.
 */
void event_line_error(const struct lines *lines, const struct event_subject *subject,
		      const char *code, const char *hint,
		      void (*fill)(void *context, struct jsonw *w), void *context,
		      const char *format, ...) __attribute__((format(printf, 7, 8)));

/* 16 hex digits and the NUL. */
#define SESSION_TEXT_BYTES 17
void event_line_session_text(uint64_t session, char text[SESSION_TEXT_BYTES]);

#endif
