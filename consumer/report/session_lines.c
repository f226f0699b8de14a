/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/report/session_lines.h"

#include "consumer/answer/session_facts.h"
#include "consumer/evidence/evidence_kinds.h"
#include "consumer/evidence/waits/session_pools.h"
#include "consumer/evidence/waits/session_timeline.h"

static void put_kinds(const struct session_result *s, const struct event_lines *lines,
		      const struct event_subject *subject, bool leading)
{
	for (size_t i = 0; evidence_kinds_in_order[i]; i++) {
		const struct signal_kind *kind = evidence_kinds_in_order[i];

		if (kind->lines && kind->leads == leading && s->signals[kind->id])
			kind->lines(s, lines, subject);
	}
}

void session_lines_put(struct session_result *s, const struct wait_places *places,
		       const struct event_lines *lines, const struct event_subject *subject)
{
	session_facts_write(s, lines);
	put_kinds(s, lines, subject, true);
	session_pools_put(s, places, lines, subject);
	session_timeline_put(s, lines, subject);
	put_kinds(s, lines, subject, false);
}
