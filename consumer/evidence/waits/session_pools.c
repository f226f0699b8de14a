/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/waits/session_pools.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "consumer/evidence/time/session_queue.h"
#include "consumer/evidence/time/thread_pools.h"
#include "consumer/evidence/waits/look_coverage.h"
#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

static void write_blocked(const struct thread_pool *p, struct jsonw *w)
{
	jsonw_object(w, "blocked_ns");
	for (int i = ACCOUNT_QUEUE + 1; i < ACCOUNT_PARTS_; i++)
		if (p->part_ns[i])
			jsonw_u64(w, thread_pools_part((enum account_part)i), p->part_ns[i]);
	jsonw_object_end(w);
}

static void write_longest(const struct thread_pool *p, struct jsonw *w)
{
	if (!p->longest_ns)
		return;
	jsonw_object(w, "longest");
	jsonw_u64(w, "wait_ns", p->longest_ns);
	jsonw_string(w, "kind", thread_pools_part((enum account_part)p->longest_kind));
	jsonw_u64(w, "tid", p->longest_tid);
	jsonw_string_n(w, "comm", p->longest_comm, strnlen(p->longest_comm, COMM_BYTES));
	jsonw_object_end(w);
}

static void write_fates(const struct thread_pool *p, struct jsonw *w)
{
	const struct {
		const char *key;
		uint64_t threads;
	} fates[] = { { "born", p->born },
		      { "ended", p->ended },
		      { "arrived", p->arrived },
		      { "left", p->left } };

	for (size_t i = 0; i < ARRAY_SIZE(fates); i++)
		if (fates[i].threads)
			jsonw_u64(w, fates[i].key, fates[i].threads);
}

/* `condition_ns`: part of its lock time that it spent on condition variables. */
static void put_pool(const struct thread_pool *p, uint64_t condition_ns,
		     const struct event_lines *lines, const struct event_subject *subject)
{
	struct jsonw w;

	event_line_begin(lines, &w, "pool", subject);
	jsonw_string(&w, "signal", rules_signal_name(SIGNAL_POOLS));
	if (p->tgid) {
		jsonw_u64(&w, "pid", p->tgid);
		jsonw_u64(&w, "start_ns", p->start_ns);
		jsonw_string_n(&w, "pool", p->name, strnlen(p->name, COMM_BYTES));
	} else {
		jsonw_u64(&w, "others", p->pools);
	}
	jsonw_u64(&w, "threads", p->threads);
	write_fates(p, &w);
	jsonw_u64(&w, "wall_ns", p->wall_ns);
	jsonw_u64(&w, "running_ns", p->part_ns[ACCOUNT_RUNNING]);
	jsonw_u64(&w, "queue_ns", p->part_ns[ACCOUNT_QUEUE]);
	write_blocked(p, &w);
	condition_ns = MIN(condition_ns, p->part_ns[ACCOUNT_LOCK]);
	if (condition_ns)
		jsonw_u64(&w, "condition_ns", condition_ns);
	jsonw_u64(&w, "unaccounted_ns", p->unaccounted_ns);
	jsonw_u64(&w, "open_ns", p->open_ns);
	write_longest(p, &w);
	event_line_end(lines, &w);
}

/* Returns how long threads of the pool waited on condition variables, by off-CPU samples. */
static uint64_t find_condition_ns(const struct thread_pools *pools, size_t pool,
				  const struct wait_places *places)
{
	uint64_t ns = 0;
	size_t index;

	for (size_t i = 0; i < places->count; i++) {
		const struct wait_place *p = &places->rows[i];

		if (p->condition_ns && thread_pools_find(pools, p->tgid, 0, p->comm, &index) &&
		    index == pool)
			ns += p->condition_ns;
	}
	return ns;
}

void session_pools_put(const struct session_result *s, const struct wait_places *places,
		       const struct event_lines *lines, const struct event_subject *subject)
{
	const struct thread_pools *pools = thread_pools_of(s->signals);

	for (size_t i = 0; pools && i < pools->count; i++)
		put_pool(&pools->items[i], find_condition_ns(pools, i, places), lines, subject);
}

void session_pools_scale(struct session_result *s)
{
	struct look_coverage *looks = look_coverage_of(s->signals);
	const struct thread_pools *pools = thread_pools_of(s->signals);
	int r;

	if (!looks || !pools)
		return;
	r = wait_scale_apply(&s->signals[SIGNAL_OFFCPU]->taken->stacks, pools,
			     s->stop_ns - s->start_ns, &looks->scale);
	if (r == 0)
		looks->unscaled = NULL;
	else
		looks->unscaled = r == -ENOMEM ? "there was no memory for it"
					       : "the accounts of threads began too late";
}

/* Words for the waits that can make up a stall; NULL for the others. */
static const char *const waits[ACCOUNT_PARTS_] = {
	[ACCOUNT_QUEUE] = "waiting for a CPU",
	[ACCOUNT_IO] = "waiting for disks and files",
	[ACCOUNT_MEMORY] = "waiting for memory",
	[ACCOUNT_LOCK] = "waiting for locks",
	[ACCOUNT_PIPE] = "waiting in pipes",
	[ACCOUNT_SOCKET] = "waiting on sockets",
	[ACCOUNT_CHILD] = "waiting for child processes",
	[ACCOUNT_FAULT] = "waiting in page faults",
	[ACCOUNT_STOPPED] = "stopped by a signal (SIGSTOP)",
	[ACCOUNT_TRACED] = "stopped by a tracer",
	[ACCOUNT_FROZEN] = "frozen (cgroup.freeze)",
};

const uint64_t *session_pools_part_ns(const struct session_result *s)
{
	const struct thread_pools *pools = thread_pools_of(s->signals);

	return pools ? pools->all.part_ns : NULL;
}

int session_pools_headline(const struct session_result *s, uint64_t condition_ns, char *text,
			   size_t space)
{
	const struct thread_pools *pools = thread_pools_of(s->signals);
	const struct thread_pool *all = pools ? &pools->all : NULL;
	uint64_t ns = 0;
	int part, n;

	for (part = 0; all && part < ACCOUNT_PARTS_; part++) {
		ns = all->part_ns[part];
		if (part == ACCOUNT_LOCK)
			ns -= MIN(ns, condition_ns);
		if (waits[part] && all->wall_ns && ns >= all->wall_ns / 2)
			break;
	}
	if (!all || part == ACCOUNT_PARTS_)
		return 0;
	n = snprintf(text, space, "; %.0f %% of the time of its %llu thread%s was %s",
		     (double)ns * 100 / (double)all->wall_ns, (unsigned long long)all->threads,
		     all->threads == 1 ? "" : "s", waits[part]);
	if (part == ACCOUNT_QUEUE && n > 0 && (size_t)n < space)
		n += session_queue_headline(s, text + n, space - (size_t)n);
	return n;
}
