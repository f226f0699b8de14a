/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * watch_answers.h: which watch a cgroup has, for programs that ask at every switch or wake-up of
 * the machine. The same few cgroups follow each other there, and a lookup in `watches` takes as
 * long as the rest of such a program: so each CPU keeps the last answers, for as long as the
 * kernel's jiffies stand still, which is 1 to 10 ms. A cgroup's id is never used again.
 */
#ifndef TROCAR_BPF_WATCH_WATCH_ANSWERS_H
#define TROCAR_BPF_WATCH_WATCH_ANSWERS_H

#include <stdbool.h>

#include "bpf/watch/watch_lookup.h"

#define WATCH_ANSWERS 8

struct watch_answer {
	__u64 cgroup_id;
	__u64 jiffy; /* until when it holds */
	__u32 slot;  /* plus 1; 0: it has no watch */
	__u32 pad;
};

struct watch_answers {
	struct watch_answer of[WATCH_ANSWERS];
	__u64 beat_jiffy; /* until when `stale` holds */
	__u32 stale;
	/* When the clock was read last for a wake-up, and since when in vain (long_wait.h). */
	__u32 asked;
	__u64 clock_jiffy, clock_ns, window_ns;
};

/* Private. Only programs that run with interrupts off use it. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct watch_answers);
} watch_answers __weak SEC(".maps");

static __always_inline struct watch_answers *watch_answers_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&watch_answers, &zero);
}

/* Asks again for all cgroups from now on. */
static __always_inline void watch_answers_forget(struct watch_answers *answers)
{
	for (int i = 0; i < WATCH_ANSWERS; i++)
		answers->of[i].jiffy = 0;
}

/* Out of line: its key needs no room on the caller's stack. */
static __noinline int watch_answers_ask(struct watch_answer *known, __u64 cgroup_id, __u64 jiffy)
{
	__u32 index;

	known->slot = watch_lookup(cgroup_id, &index) ? index + 1 : 0;
	known->cgroup_id = cgroup_id;
	known->jiffy = jiffy;
	return 0;
}

/* As watch_lookup, at most a jiffy old. */
static __always_inline bool watch_answers_find(struct watch_answers *answers, __u64 cgroup_id,
					       __u32 *ret_index)
{
	struct watch_answer *known = &answers->of[cgroup_id % WATCH_ANSWERS];
	__u64 jiffy = bpf_jiffies64();

	if (known->cgroup_id != cgroup_id || known->jiffy != jiffy)
		watch_answers_ask(known, cgroup_id, jiffy);
	*ret_index = known->slot - 1;
	return known->slot;
}

/* As watch_lookup_is_stale, at most a jiffy old. */
static __always_inline bool watch_answers_is_stale(struct watch_answers *answers,
						   const struct control *c)
{
	__u64 jiffy = bpf_jiffies64();

	if (answers->beat_jiffy != jiffy) {
		answers->stale = watch_lookup_is_stale(c, bpf_ktime_get_ns());
		answers->beat_jiffy = jiffy;
	}
	return answers->stale;
}

#endif
