/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/answer/findings_search.h"

#include <stdio.h>
#include <string.h>

#include "consumer/answer/chain_links.h"
#include "consumer/answer/session_facts.h"
#include "consumer/evidence/time/queue_waits.h"
#include "consumer/sampling/wait_kind.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

double findings_search_seconds(uint64_t ns)
{
	return (double)ns / (double)NSEC_PER_SEC;
}

void findings_search_add_numbered(struct findings_search *s, enum finding_cause cause, uint64_t ns,
				  const char *says, const struct finding_evidence *evidence,
				  uint32_t chain)
{
	struct finding f = { .cause = cause, .ns = ns, .evidence = *evidence, .chain = chain };

	snprintf(f.says, sizeof(f.says), "%s", says);
	findings_add(&s->found, &f);
}

void findings_search_add(struct findings_search *s, enum finding_cause cause, uint64_t ns,
			 const char *says, const struct finding_evidence *evidence)
{
	findings_search_add_numbered(s, cause, ns, says, evidence, 0);
}

void findings_search_level(struct findings_search *s, enum finding_cause cause,
			   enum findings_level level, const char *proof)
{
	struct finding *f = findings_get(&s->found, cause);

	if (!f)
		return;
	f->level = level;
	f->proof = proof;
}

const struct thread_pools *findings_search_accounts(const struct session_result *s)
{
	const struct thread_pools *pools = thread_pools_of(s->signals);
	const struct queue_waits *queue = queue_waits_of(s->signals);

	return pools ? pools : queue ? &queue->pools : NULL;
}

void findings_search_pass(struct findings_search *s, enum account_part from, uint64_t of_ns,
			  const struct chains_wanted *wanted)
{
	static const enum account_part to[] = { ACCOUNT_IO, ACCOUNT_MEMORY, ACCOUNT_QUEUE };

	for (size_t i = 0; i < ARRAY_SIZE(to); i++) {
		double share = chain_links_behind(&s->summary->chains, (uint8_t)from, wanted,
						  (uint8_t)to[i]);
		uint64_t ns = MIN((uint64_t)((double)of_ns * share), s->part_ns[from]);

		s->part_ns[from] -= ns;
		s->part_ns[to[i]] += ns;
		s->passed_ns[to[i]] += ns;
	}
}

void findings_search_say_passed(const struct findings_search *s, enum account_part part,
				char says[FINDINGS_SAYS_BYTES])
{
	size_t n = strlen(says);

	if (s->passed_ns[part] >= NSEC_PER_MSEC * 100)
		snprintf(says + n, FINDINGS_SAYS_BYTES - n,
			 "; %.1f s of it for locks and other threads that waited so",
			 findings_search_seconds(s->passed_ns[part]));
}

void findings_search_say_place(const struct findings_search *s, enum account_part part,
			       const char *what, char *says)
{
	int n = snprintf(says, FINDINGS_SAYS_BYTES, "its threads waited %.1f s %s",
			 findings_search_seconds(s->part_ns[part]), what);

	if (n > 0 && n < FINDINGS_SAYS_BYTES)
		session_waits_place(&s->summary->waits, (uint8_t)part, s->part_ns[part], says + n,
				    FINDINGS_SAYS_BYTES - (size_t)n);
}

struct finding_evidence findings_search_evidence(const struct findings_search *s,
						 enum account_part part)
{
	struct finding_evidence e = { .type = "pool" };
	const char *kind = part >= ACCOUNT_IO ? wait_kind_name((uint8_t)part) : NULL;

	if (!kind || !s->summary->waits.state_ns[part])
		return e;
	e = (struct finding_evidence){ .type = "stack", .signal = "offcpu", .key = "wait" };
	snprintf(e.value, sizeof(e.value), "%s", kind);
	return e;
}

bool findings_search_limit(struct findings_search *s, enum finding_cause cause, enum cause_id id,
			   const char *source, const char *more, uint64_t ns)
{
	struct finding_evidence e = { .type = "facts", .key = "source" };
	char fact[CAUSES_TEXT_BYTES], says[FINDINGS_SAYS_BYTES];

	if (!session_facts_say(s->session, id, fact))
		return false;
	snprintf(says, sizeof(says), "%.*s%s", CAUSES_TEXT_BYTES, fact, more);
	snprintf(e.value, sizeof(e.value), "%s", source);
	findings_search_add(s, cause, ns, says, &e);
	return true;
}
