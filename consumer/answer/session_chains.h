/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_chains.h: writes the threads that the session's threads waited for, link by link, in
 * `chain` lines and in the sentences of findings. Report thread only.
 */
#ifndef TROCAR_CONSUMER_ANSWER_SESSION_CHAINS_H
#define TROCAR_CONSUMER_ANSWER_SESSION_CHAINS_H

#include <stddef.h>

#include "consumer/answer/session_digest.h"
#include "consumer/evidence/locks/lock_names.h"
#include "consumer/output/event_line.h"
#include "consumer/session/session_result.h"

#define SESSION_CHAINS_MAX   8 /* lines */
#define SESSION_CHAINS_BYTES 640

/*
 * Makes summary->chains, and writes a line for each useful chain: a thread waited for at least a
 * tenth of the session, not for work, and the awaited thread is known. `summary` must have all
 * stacks. `names`: as in session_locks_put.
 */
void session_chains_put(const struct session_result *s, struct session_digest *summary,
			const struct lock_name *names, const struct event_lines *lines,
			const struct event_subject *subject);

/*
 * Writes the links of a chain from number `from` (0: the first) on as a sentence: "api-7 waited 1.9
 * s for lock index_lock held by writer-3, which waited 1.7 s for disks and files in sync_index on
 * the file wal (vdb)". `disks` (NULL: none) has the disk names. Returns the length; 0 if there is
 * no such link.
 */
int session_chains_say(const struct chain *c, uint32_t from, const struct lock_name *names,
		       const struct facts_disks *disks, char *text, size_t space);

#endif
