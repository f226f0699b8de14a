/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_chains.h: writes the threads that the session's threads waited for, link by link, in
 * lines `chain` and in the sentences of findings. Report thread only.
 */
#ifndef TROCAR_CONSUMER_REPORT_SESSION_CHAINS_H
#define TROCAR_CONSUMER_REPORT_SESSION_CHAINS_H

#include <stddef.h>

#include "consumer/evidence/locks/lock_names.h"
#include "consumer/output/event_line.h"
#include "consumer/report/session_digest.h"
#include "consumer/session/session_result.h"

#define SESSION_CHAINS_MAX   8 /* lines */
#define SESSION_CHAINS_BYTES 640

/*
 * Makes summary->chains, and writes a line for each useful one: a thread waited for a tenth of the
 * session and more, not for work, and the awaited thread is known. All stacks are in `summary`.
 * `names`: as in session_locks_put.
 */
void session_chains_put(const struct session_result *s, struct session_digest *summary,
			const struct lock_name *names, const struct event_lines *lines,
			const struct event_subject *subject);

/*
 * Writes the links of a chain from number `from` (0: the first) on as a sentence: "api-7 waited 1.9
 * s for lock index_lock held by writer-3, which waited 1.7 s for disks and files in sync_index on
 * the file wal (vdb)", where `disks` (NULL: none) have the name. Returns the length; 0: there is no
 * such link.
 */
int session_chains_say(const struct chain *c, uint32_t from, const struct lock_name *names,
		       const struct facts_disks *disks, char *text, size_t space);

#endif
