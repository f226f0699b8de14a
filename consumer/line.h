/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * line.h: one event line: the keys that every line has, then the caller's, then the queue. Any
 * thread; each line is its own writer. docs/events.md says what each key means.
 */
#ifndef TROCAR_CONSUMER_LINE_H
#define TROCAR_CONSUMER_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/container.h"
#include "consumer/host.h"
#include "consumer/output.h"
#include "shared/jsonw.h"
#include "shared/rules/rules.h"

/* Where lines go and what they all say; never changes after the start. */
struct lines {
	const struct host *host;
	struct output *output;
	size_t max_bytes; /* of a line, '\n' included */
};

/* The rule and the cgroup of a line; every field may be absent (NULL or 0). */
struct line_subject {
	const struct rule *rule;
	uint32_t generation;
	const char *cgroup;
	uint64_t cgroup_id;
	struct container container; /* as container_parse(cgroup) */
	uint64_t session;
};

/*
 * Starts a line of `type` in `w` (initialised here; give it to line_end in every case). `subject`
 * may be NULL.
 */
void line_begin(const struct lines *lines, struct jsonw *w, const char *type,
		const struct line_subject *subject);

/*
 * Ends the line and queues it; releases `w`. Returns true when queued; false when it was dropped by
 * the queue, is longer than a line may be, or there was no memory.
 */
bool line_end(const struct lines *lines, struct jsonw *w);

/* Error lines: code, one sentence, and what the operator can do. `fill` adds numbers, may be NULL.
 */
void line_error(const struct lines *lines, const struct line_subject *subject, const char *code,
		const char *hint, void (*fill)(void *context, struct jsonw *w), void *context,
		const char *format, ...) __attribute__((format(printf, 7, 8)));

/* 16 hex digits and the NUL. */
#define SESSION_TEXT_BYTES 17
void line_session_text(uint64_t session, char text[SESSION_TEXT_BYTES]);

#endif
