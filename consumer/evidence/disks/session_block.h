/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_block.h: writes the disk requests of the session's cgroup, their times, and the other
 * users of the disks. Report thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_DISKS_SESSION_BLOCK_H
#define TROCAR_CONSUMER_EVIDENCE_DISKS_SESSION_BLOCK_H

#include "consumer/evidence/disks/block_requests.h"
#include "consumer/output/event_line.h"
#include "consumer/session/session_result.h"

/*
 * Writes a `disk` line for each disk and operation, its `histogram` lines, and a `neighbour` line
 * for each other cgroup that used one of these disks; writes nothing if the session has no signal
 * `block`.
 */
void session_block_put(const struct session_result *s, const struct event_lines *lines,
		       const struct event_subject *subject);

#endif
