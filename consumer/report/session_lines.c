/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/report/session_lines.h"

#include "consumer/evidence/cpu/session_neighbours.h"
#include "consumer/evidence/disks/session_block.h"
#include "consumer/evidence/memory/session_reclaim.h"
#include "consumer/evidence/sockets/session_sockets.h"
#include "consumer/evidence/time/session_queue.h"
#include "consumer/evidence/waits/session_pools.h"
#include "consumer/evidence/waits/session_timeline.h"
#include "consumer/report/session_facts.h"

void session_lines_put(struct session_result *s, const struct wait_places *places,
		       const struct event_lines *lines, const struct event_subject *subject)
{
	session_facts_write(s, lines);
	session_neighbours_put(s, lines, subject);
	session_pools_put(s, places, lines, subject);
	session_timeline_put(s, lines, subject);
	session_queue_put(s, lines, subject);
	session_block_put(s, lines, subject);
	session_sockets_put(s, lines, subject);
	session_reclaim_put(s, lines, subject);
}
