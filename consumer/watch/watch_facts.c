/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/watch/watch_facts.h"

#include "consumer/io/turn.h"
#include "shared/tools/clock.h"

void watch_facts_step(struct watches *ws, uint64_t now_ns)
{
	uint32_t slots = ws->pins->abi.slots, left = ws->count;
	enum facts_depth depth = left <= WATCH_FACTS_FEW ? FACTS_WHOLE : FACTS_CHEAP;
	uint64_t until_ns = turn_until_ns();

	if (!ws->facts || now_ns - ws->facts_ns < WATCH_FACTS_EVERY_NS)
		return;
	ws->facts_ns = now_ns;
	for (uint32_t i = 0; left && i < slots; i++) {
		struct watch *w = ws->by_slot[ws->facts_next];

		ws->facts_next = (ws->facts_next + 1) % slots;
		if (!w)
			continue;
		left--;
		if (w->session || !facts_record_wants(&w->facts, now_ns))
			continue;
		facts_record_read(&w->facts, ws->facts, w->path, depth, now_ns);
		if (clock_mono_ns() >= until_ns)
			return;
	}
}

size_t watch_facts_of_root(void *context, uint32_t pids[FACTS_PLACE_PIDS])
{
	struct watches *ws = context;
	const struct watch *root = idmap_get(&ws->by_cgroup, ws->log->cgroups->root_id);
	const struct process *p;
	size_t n = 0;
	uint64_t id;

	if (!root)
		return 0;
	idmap_for_each (&ws->processes->by_id, i, id, p)
		if (p->watch == root && !p->gone_ns && n < FACTS_PLACE_PIDS)
			pids[n++] = p->tgid;
	return n;
}
