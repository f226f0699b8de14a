/* SPDX-License-Identifier: BSD-2-Clause */
/* look_fixture.h: a process in a sampled cgroup, and the report of `looks` for a thread. */
#ifndef TROCAR_TESTS_BPF_LOOK_FIXTURE_H
#define TROCAR_TESTS_BPF_LOOK_FIXTURE_H

#include "unwind_fixture.h"

/* A record, copied out; a short one has no sample. */
struct seen_look {
	struct look_record record;
	uint64_t frames[2 * STACK_FRAMES];
	bool told;
};

/* A process in a cgroup that is looked at. */
static inline struct fixture begin_looks(const char *mode)
{
	struct fixture f = begin(mode);

	f.h->slots[SLOT].looked = 1;
	return f;
}

/* Reads once, and keeps the report of thread `tid`. Returns the number of reported threads. */
static inline size_t read_looks(struct harness *h, pid_t tid, struct seen_look *ret_look)
{
	_cleanup_free_ char *bytes = NULL;
	size_t n = harness_read(h->skel->progs.looks, &bytes), count = 0;
	struct look_head head;

	memset(ret_look, 0, sizeof(*ret_look));
	for (size_t at = 0; at < n; at += head.bytes) {
		assert_true(n - at >= sizeof(head));
		memcpy(&head, bytes + at, sizeof(head));
		assert_true(head.bytes >= sizeof(head) && head.bytes <= n - at);
		assert_int_equal(head.bytes % 8, 0);
		assert_true(head.flags < LOOK_FLAGS_END_);
		if (head.flags & LOOK_PAUSE)
			continue;
		count++;
		if (head.tid != (uint32_t)tid)
			continue;
		assert_false(ret_look->told);
		assert_true(head.bytes <= offsetof(struct seen_look, told));
		memcpy(ret_look, bytes + at, head.bytes);
		ret_look->told = true;
		if (head.flags & LOOK_AS_BEFORE)
			assert_int_equal(head.bytes, sizeof(head));
		else
			assert_int_equal(head.bytes,
					 sizeof(ret_look->record) +
						 8 * (ret_look->record.sample.kernel_frames +
						      ret_look->record.sample.user_frames));
	}
	return count;
}

/* The same again and again until the thread sleeps. */
static inline void read_asleep(struct harness *h, pid_t tid, struct seen_look *ret_look)
{
	for (int i = 0; i < 500; i++) {
		h->control->look_epoch++;
		read_looks(h, tid, ret_look);
		if (ret_look->told && !(ret_look->record.head.flags & LOOK_RUNNABLE))
			return;
		harness_sleep_ms(10);
	}
	fail_msg("thread %d is not told of as asleep", tid);
}

#endif
