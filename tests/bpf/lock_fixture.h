/* SPDX-License-Identifier: BSD-2-Clause */
/* lock_fixture.h: threads that wait for locks in a watched group, and readers of the report. */
#ifndef TROCAR_TESTS_BPF_LOCK_FIXTURE_H
#define TROCAR_TESTS_BPF_LOCK_FIXTURE_H

#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "account_fixture.h"

#define ROUNDS	 5
#define HOLD_MS	 40
#define WAITERS	 3
#define LOCKS	 64 /* of a test */
#define START_MS 100

/* The notes of the threads under test about themselves. */
static struct shared {
	uint32_t word, ended;
	pid_t pid, waker;
	pthread_mutex_t mutex;
	uint64_t waited_ns;
	char comm[COMM_BYTES];
} * shared;

struct found {
	struct lock_key key;
	struct lock_sums sums;
};

static inline struct fixture begin_locks(const struct harness_options *options)
{
	struct fixture f = begin(options, 0);

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	f.h->skel->links.lock_waking = bpf_program__attach(f.h->skel->progs.lock_waking);
	assert_non_null(f.h->skel->links.lock_waking);
	return f;
}

static inline void end_locks(struct fixture *f)
{
	end(f);
	munmap(shared, sizeof(*shared));
}

static inline long futex(uint32_t *word, int operation, uint32_t value,
			 const struct timespec *timeout)
{
	return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

static inline void await_end(void)
{
	for (int i = 0; i < 500 && !__atomic_load_n(&shared->ended, __ATOMIC_SEQ_CST); i++)
		harness_sleep_ms(10);
	assert_int_equal(shared->ended, 1);
	harness_sleep_ms(20);
}

/* Who has just come into the cgroup has its first account when it next leaves its CPU. */
static inline void come_in(void)
{
	harness_sleep_ms(1);
}

static inline _Noreturn void say_end(void)
{
	__atomic_store_n(&shared->ended, 1, __ATOMIC_SEQ_CST);
	for (;;)
		pause();
}

/* Finds the locks of a process; returns how many. */
static inline size_t find_locks(const struct fixture *f, pid_t pid, struct found found[LOCKS])
{
	int fd = bpf_map__fd(f->h->skel->maps.locks);
	struct lock_key key, *last = NULL;
	size_t n = 0;

	while (bpf_map_get_next_key(fd, last, &key) == 0 && n < LOCKS) {
		found[n].key = key;
		if (key.tgid == (uint32_t)pid && bpf_map_lookup_elem(fd, &key, &found[n].sums) == 0)
			n++;
		last = &key;
	}
	return n;
}

/* Sets *ret_found to the waits of the process for one address. */
static inline void find_lock(const struct fixture *f, pid_t pid, const void *address,
			     struct found *ret_found)
{
	struct found found[LOCKS];
	size_t n = find_locks(f, pid, found);

	memset(ret_found, 0, sizeof(*ret_found));
	for (size_t i = 0; i < n; i++)
		if (found[i].key.address == (uint64_t)(uintptr_t)address)
			*ret_found = found[i];
	assert_int_equal(ret_found->key.tgid, pid);
}

/* Returns how many long waits for a lock were ended so; *ret_waker is the last of these. */
static inline uint64_t count_woken(const struct fixture *f, const struct lock_key *lock,
				   uint32_t kind, uint32_t tid, struct lock_waker *ret_waker)
{
	const struct lock_waker_key key = { .lock = *lock, .kind = kind, .tid = tid };

	memset(ret_waker, 0, sizeof(*ret_waker));
	if (bpf_map_lookup_elem(bpf_map__fd(f->h->skel->maps.lock_wakers), &key, ret_waker) < 0)
		return 0;
	return ret_waker->waits;
}

static inline void *wait_for_word(void *unused)
{
	pthread_setname_np(pthread_self(), "waiter");
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint64_t began_ns = harness_now_ns();

		while (__atomic_load_n(&shared->word, __ATOMIC_SEQ_CST) == round)
			futex(&shared->word, FUTEX_WAIT, round, NULL);
		__atomic_fetch_add(&shared->waited_ns, harness_now_ns() - began_ns,
				   __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static inline void hold_word(void *unused)
{
	pthread_t waiters[WAITERS];

	shared->waker = (pid_t)syscall(SYS_gettid);
	pthread_setname_np(pthread_self(), "holder");
	for (int i = 0; i < WAITERS; i++)
		pthread_create(&waiters[i], NULL, wait_for_word, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		harness_sleep_ms(HOLD_MS);
		__atomic_fetch_add(&shared->word, 1, __ATOMIC_SEQ_CST);
		futex(&shared->word, FUTEX_WAKE, WAITERS, NULL);
	}
	say_end();
}

static inline void block_for_ever(void *unused)
{
	come_in();
	futex(&shared->word, FUTEX_WAIT, 0, NULL);
}

/* Reads lock_waits; the record of thread `tid` is *ret_record. Returns how many there are. */
static inline size_t read_open(const struct fixture *f, pid_t tid, struct lock_record *ret_record)
{
	char *bytes = NULL;
	size_t n = harness_read(f->h->skel->progs.lock_waits, &bytes), found = 0;

	memset(ret_record, 0, sizeof(*ret_record));
	for (size_t at = 0; at + sizeof(*ret_record) <= n; at += sizeof(*ret_record)) {
		struct lock_record record;

		memcpy(&record, bytes + at, sizeof(record));
		if (record.tid == (uint32_t)tid)
			*ret_record = record;
		found++;
	}
	free(bytes);
	return found;
}

#endif
