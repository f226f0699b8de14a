/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_facts.h: writes the "facts" lines of a session, and finds the sentence about its cause.
 * Report thread only.
 */
#ifndef TROCAR_CONSUMER_ANSWER_SESSION_FACTS_H
#define TROCAR_CONSUMER_ANSWER_SESSION_FACTS_H

#include <stdbool.h>

#include "consumer/facts/causes.h"
#include "consumer/output/event_line.h"
#include "consumer/session/session_result.h"

/* Sets `disks`. Lines written before this have disk numbers instead of names. */
void session_facts_read_disks(struct session_result *s);

/* Writes a line for each source; writes nothing for a session without facts. */
void session_facts_write(const struct session_result *s, const struct event_lines *lines);

/*
 * Returns the known stall time of the session's tasks, from the begin of the onset to the end; 0
 * without pressure.
 */
uint64_t session_facts_stalled_ms(const struct session_result *s);

/*
 * Sets *ret_id to the cause that the facts prove, of the highest rank, and writes its sentence.
 * Returns false if they prove none.
 */
bool session_facts_cause(const struct session_result *s, enum cause_id *ret_id,
			 char text[CAUSES_TEXT_BYTES]);

/* Writes the sentence of cause `id`. Returns false if the facts do not prove it. */
bool session_facts_say(const struct session_result *s, enum cause_id id,
		       char text[CAUSES_TEXT_BYTES]);

#endif
