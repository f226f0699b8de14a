/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * thread_accounts.h: reads the time accounts of a session's threads from the kernel side, at its
 * begin and at its end, and takes the difference. The split of a thread's time is exact. A reading
 * costs about a microsecond for each thread of the session, and half of one for each other thread
 * of the machine.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_TIME_THREAD_ACCOUNTS_H
#define TROCAR_CONSUMER_EVIDENCE_TIME_THREAD_ACCOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi/abi.h"

struct pinned_maps;

enum thread_fate {
	THREAD_BORN = 1u << 0,	  /* after the begin */
	THREAD_ARRIVED = 1u << 1, /* from another cgroup; its account begins when it first ran */
	THREAD_ENDED = 1u << 2,
	THREAD_LEFT = 1u << 3, /* moved, or tid changed by execve; account ends at its last run */
};

/* One thread in the session: wall_ns = the sum of part_ns + unaccounted_ns. */
struct thread_account {
	uint32_t tid, tgid;
	uint32_t fate;	   /* enum thread_fate */
	uint64_t start_ns; /* of its process, as in struct process_key */
	uint64_t wall_ns, unaccounted_ns;
	struct slot_switches switches; /* number of times that it left a CPU */
	uint64_t part_ns[ACCOUNT_PARTS_];
	uint64_t open_ns;    /* the part of these that was unfinished at the end */
	uint64_t longest_ns; /* of its completed and unfinished waits; 0: none */
	uint32_t longest_kind;
	char comm[COMM_BYTES];
	struct thread_queue queue; /* its completed waits for a CPU; longest_ns 0: unknown */
};

/* An unfinished wait, and the system call that the thread is in (struct time_account). */
struct open_wait {
	uint64_t wait_ns;
	uint32_t tid, tgid;
	uint32_t call;
	char comm[COMM_BYTES];
	uint64_t begin_ns;
	enum account_part part;
};

struct open_waits {
	struct open_wait *items; /* owned */
	size_t count;
};

/* The accounts at the begin. All 0 before. */
struct thread_baseline {
	struct thread_before {
		uint64_t first_ns; /* with tid: identifies the thread of the account */
		uint32_t tid;
		uint64_t since_ns; /* when it was read: its time in the session begins here */
		uint64_t longest_ns;
		struct slot_switches switches;
		uint64_t part_ns[ACCOUNT_PARTS_];
		struct thread_queue queue;
	} * items; /* owned; sorted by tid and first_ns */
	size_t count;
	uint64_t begin_ns;
	uint64_t read_ns; /* duration of the reading */
	struct slot_accounts losses;
	struct open_waits open;
};

struct thread_accounts {
	struct thread_account *items; /* owned */
	size_t count;
	uint64_t lost;		     /* threads that did not fit into the table */
	uint64_t no_memory;	     /* part of `lost`: the table was not full */
	struct slot_accounts losses; /* of the slot, since the begin */
	struct open_waits open;
	uint64_t end_ns, read_ns; /* begin of the last reading, and its duration */
};

/* An unfinished reading at the begin. */
struct thread_entry;

/*
 * Begins to enter all threads of the session on `slot`. The slot is set to capture, and the program
 * is attached. Returns 0 or -errno.
 */
int thread_accounts_enter(const struct pinned_maps *pins, uint32_t slot,
			  struct thread_entry **ret_entry);

/*
 * Continues until `until_ns` (clock_mono_ns). Returns 1 if there is more, 0 if the reading is
 * complete, or -errno.
 */
int thread_accounts_enter_step(struct thread_entry *t, uint64_t until_ns);

/*
 * Enters the rest and records the accounts of all threads. Frees `entry`. Returns 0 or -errno.
 * Release *ret_before with thread_accounts_forget.
 */
int thread_accounts_entered(struct thread_entry *entry, struct thread_baseline *ret_before);

/* Frees a reading that was not passed to thread_accounts_entered; NULL is allowed. */
void thread_accounts_leave(struct thread_entry *t);

/*
 * Enters all threads and records their accounts in one call. Returns 0 or -errno; on failure
 * nothing is kept.
 */
int thread_accounts_begin(const struct pinned_maps *pins, uint32_t slot,
			  struct thread_baseline *ret_before);

/* An unfinished reading at the end. */
struct thread_reading;

/*
 * Begins to read the times of each thread of the session since `before`; `only_tgid` 0: of all
 * processes. Call while the slot still names the session. `before` is borrowed until the reading is
 * closed or taken. Returns 0 or -errno.
 */
int thread_accounts_open(const struct pinned_maps *pins, uint32_t slot, uint32_t only_tgid,
			 const struct thread_baseline *before, struct thread_reading **ret_reading);

/*
 * Reads until `until_ns` (clock_mono_ns). Returns 1 if there is more, 0 if the reading is complete,
 * or -errno.
 */
int thread_accounts_step(struct thread_reading *t, uint64_t until_ns);

/*
 * Reads the rest and hands out the accounts. Frees `reading`. Returns 0 or -errno. Release
 * *ret_accounts with thread_accounts_done.
 */
int thread_accounts_take(struct thread_reading *reading, struct thread_accounts *ret_accounts);

/* Frees a reading that was not passed to thread_accounts_take; NULL is allowed. */
void thread_accounts_close(struct thread_reading *t);

/*
 * Reads the times of each thread of the session since `before` in one call; `only_tgid` 0: of all
 * processes. Call while the slot still names the session. Returns 0 or -errno.
 */
int thread_accounts_end(const struct pinned_maps *pins, uint32_t slot, uint32_t only_tgid,
			const struct thread_baseline *before, struct thread_accounts *ret_accounts);

void thread_accounts_forget(struct thread_baseline *before);
void thread_accounts_done(struct thread_accounts *accounts);

#endif
