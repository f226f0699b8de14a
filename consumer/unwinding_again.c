/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwinding_again.h"

#include <stdbool.h>

#include "consumer/agent.h"
#include "consumer/process.h"
#include "shared/clock.h"
#include "shared/macro.h"

/* So long after execve(2) the libraries may not all be there; so long it may be loading more. */
#define YOUNG_NS   (30 * NSEC_PER_MSEC)
#define LOADING_NS NSEC_PER_SEC

/* The mappings are to be read again in a moment. */
static void note(struct unwinding *u, const struct process *p)
{
	if (u->again_count < UNWINDING_AGAIN)
		u->again[u->again_count++] =
			(struct process_key){ .tgid = p->tgid, .start_ns = p->start_ns };
}

void unwinding_again_young(struct agent *a, const struct process *p)
{
	if (p->exec_ns && p->maps.read_ns - p->exec_ns <= YOUNG_NS)
		note(&a->unwinding, p);
}

void unwinding_settle(struct agent *a)
{
	struct unwinding *u = &a->unwinding;
	size_t count = u->again_count;
	struct process *p;

	u->again_count = 0;
	for (size_t i = 0; i < count; i++) {
		p = process_find(a, u->again[i].tgid, u->again[i].start_ns);
		if (p)
			process_map_image(a, p, clock_mono_ns());
	}
}

void unwinding_unmapped(struct agent *a, struct process *p, uint64_t time_ns)
{
	uint64_t since_ns = MAX(p->exec_ns, p->seen_ns);

	if (p->gone_ns)
		return;
	p->unwind.asked = true;
	if (clock_mono_ns() - since_ns < LOADING_NS)
		process_map_image(a, p, time_ns);
	else
		process_map(a, p, time_ns);
	if (p->maps.read_ns < time_ns)
		note(&a->unwinding, p);
}
