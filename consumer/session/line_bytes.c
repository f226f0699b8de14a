/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/session/line_bytes.h"

#include "shared/tools/macro.h"

#define KIB 1024u

/* Returns the owner's budget; else a budget that has not been used for an hour, or the last one. */
static struct budget *find_budget(struct line_bytes *b, uint64_t owner, uint64_t now_ns)
{
	size_t idle = LINE_BYTES_OWNERS;

	for (size_t i = 0; i < LINE_BYTES_OWNERS; i++) {
		if (b->owners[i].owner == owner)
			return &b->owners[i].kib;
		if (idle == LINE_BYTES_OWNERS && !budget_spent_ms(&b->owners[i].kib, now_ns))
			idle = i;
	}
	b->owners[idle].owner = owner;
	return &b->owners[idle].kib;
}

uint64_t line_bytes_left(struct line_bytes *b, uint64_t owner, uint64_t now_ns)
{
	uint64_t spent = budget_spent_ms(find_budget(b, owner, now_ns), now_ns) * KIB;
	uint64_t left = LINE_BYTES_HOUR - MIN(LINE_BYTES_HOUR, spent);

	left = MAX(LINE_BYTES_LEAST, left);
	return MIN(LINE_BYTES_SESSION, left);
}

void line_bytes_spend(struct line_bytes *b, uint64_t owner, uint64_t now_ns, uint64_t bytes)
{
	budget_spend(find_budget(b, owner, now_ns), now_ns, (uint32_t)((bytes + KIB - 1) / KIB));
}
