/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * watch_answers.h: caches which watch a cgroup has, for programs that run at every context switch
 * or wake-up on the host. A few cgroups alternate there, and a lookup in `watches` takes as long as
 * the rest of such a program. So each CPU keeps its last answers for one jiffy, 1 to 10 ms. A
 * cgroup id is never reused.
 */
#ifndef TROCAR_BPF_WATCH_WATCH_ANSWERS_H
#define TROCAR_BPF_WATCH_WATCH_ANSWERS_H

#include <stdbool.h>

#include "bpf/watch/watch_lookup.h"

#define WATCH_ANSWERS 8

struct watch_answer {
	__u64 cgroup_id;
	__u64 jiffy; /* the jiffy in which the answer is valid */
	__u32 slot;  /* plus 1; 0: no watch */
	__u32 pad;
};

struct watch_answers {
	struct watch_answer of[WATCH_ANSWERS];
	__u64 beat_jiffy; /* the jiffy in which `stale` is valid */
	__u32 stale;
	/*
	 * For long_wait.h: clock reads that found a short wait, when the clock was last read, and
	 * the begin of the window that `asked` counts in.
	 */
	__u32 asked;
	__u64 clock_jiffy, clock_ns, window_ns;
};

/* Private. Only programs that run with interrupts off use it. */
__weak MAP(PERCPU_ARRAY, watch_answers, __u32, struct watch_answers, 1);

/* Invalidates all cached answers. */
static __always_inline void watch_answers_forget(struct watch_answers *answers)
{
	for (int i = 0; i < WATCH_ANSWERS; i++)
		answers->of[i].jiffy = 0;
}

/* Out of line, because its key needs space that the caller's stack does not have. */
static __noinline int watch_answers_ask(struct watch_answer *known, __u64 cgroup_id, __u64 jiffy)
{
	__u32 index;

	known->slot = watch_lookup(cgroup_id, &index) ? index + 1 : 0;
	known->cgroup_id = cgroup_id;
	known->jiffy = jiffy;
	return 0;
}

/* As watch_lookup, with an answer that is at most a jiffy old. */
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

/* As watch_lookup_is_stale, with an answer that is at most a jiffy old. */
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
