/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tally.h: counts the frames of each session that had no name and those named now, for the
 * session's last line: its sums and advice are from the agent, and must not contradict the stacks
 * before it.
 */
#ifndef TROCAR_CTL_SYMBOLIZE_TALLY_H
#define TROCAR_CTL_SYMBOLIZE_TALLY_H

#include "ctl/events/event.h"
#include "ctl/events/pool.h"

struct jsonw;

#define TALLY_MAX_BYTES (64u << 20)

struct tally {
	struct pool_budget budget;
	struct pool texts, keys;
	struct tally_sum {
		uint64_t before, now; /* frames without a name, weighted by samples */
	} * sums;		      /* one per key */
	uint32_t space;
	char *plain; /* buffer for a text without escapes */
	uint32_t plain_space;
};

void tally_init(struct tally *t);
void tally_done(struct tally *t);

/*
 * Counts a frame that had no name, `count` times; `named`: it has one now. `session` is as written
 * in the line. 0, -ENOMEM, -ENOSPC.
 */
int tally_add(struct tally *t, const char *session, size_t session_bytes,
	      const struct event_frame *frame, uint64_t count, bool named);

/*
 * Appends the session.end line with the changes: modules_unnamed, advice and the share of unnamed
 * frames; `symbolized` counts them, unless the line would be longer than max_bytes. 0; -ENOENT:
 * nothing changed, and nothing was appended; -ENOMEM.
 */
int tally_end(const struct tally *t, const struct event *event, const char *line, size_t bytes,
	      size_t max_bytes, struct jsonw *w);

#endif
