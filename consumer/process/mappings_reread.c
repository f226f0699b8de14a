/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/process/mappings_reread.h"

#include <string.h>

#include "consumer/io/turn.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/*
 * For YOUNG_NS after execve(2) ld.so may not have mapped all libraries yet; for LOADING_NS the
 * process may still load more.
 */
#define YOUNG_NS   (30 * NSEC_PER_MSEC)
#define LOADING_NS NSEC_PER_SEC

void mappings_reread_init(struct mappings_reread *r, struct processes *processes,
			  struct process_mappings *mappings, struct mappings_queue *queue)
{
	*r = (struct mappings_reread){ .processes = processes,
				       .mappings = mappings,
				       .queue = queue };
}

static void note_process(struct mappings_reread *r, const struct process *p)
{
	if (r->count < MAPPINGS_REREAD_MAX)
		r->keys[r->count++] = process_key(p);
}

void mappings_reread_young(struct mappings_reread *r, const struct process *p)
{
	if (p->exec_ns && p->maps.read_ns - p->exec_ns <= YOUNG_NS)
		note_process(r, p);
}

void mappings_reread_unmapped(struct mappings_reread *r, struct process *p, uint64_t time_ns)
{
	uint64_t since_ns = MAX(p->exec_ns, p->seen_ns);

	if (!process_is_needed(p))
		return;
	p->unwind.left = true;
	if (mappings_queue_is_used(r->queue)) {
		mappings_queue_ask(r->queue, p, time_ns);
		return;
	}
	if (clock_mono_ns() - since_ns < LOADING_NS)
		process_mappings_read_image(r->mappings, p, time_ns);
	else
		process_mappings_read(r->mappings, p, time_ns);
	if (p->maps.read_ns < time_ns)
		note_process(r, p);
}

bool mappings_reread_settle(struct mappings_reread *r)
{
	uint64_t until_ns = turn_until_ns();
	struct process *p;
	size_t done = 0;

	while (done < r->count && (done == 0 || clock_mono_ns() < until_ns)) {
		p = process_find(r->processes, r->keys[done].tgid, r->keys[done].start_ns);
		if (p && mappings_queue_is_used(r->queue))
			mappings_queue_ask(r->queue, p, clock_mono_ns());
		else if (p)
			process_mappings_read_image(r->mappings, p, clock_mono_ns());
		done++;
	}
	r->count -= done;
	memmove(r->keys, r->keys + done, r->count * sizeof(*r->keys));
	return r->count > 0;
}
