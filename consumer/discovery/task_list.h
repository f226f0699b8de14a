/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * task_list.h: the processes that the iterator `tasks` lists, in parts: the iterator stays open
 * between them and continues at the next pid (kernel/bpf/task_iter.c). Main thread only.
 */
#ifndef TROCAR_CONSUMER_DISCOVERY_TASK_LIST_H
#define TROCAR_CONSUMER_DISCOVERY_TASK_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi/abi.h"

struct pinned_maps;

/* One list, and the unread records of the iterator. */
struct task_list {
	struct control *control; /* borrowed */
	uint32_t trie;		 /* control.scan_trie of this list */
	bool open;
	int fd;
	size_t at, have;
	_Alignas(8) uint8_t buffer[TASKS_AT_ONCE * sizeof(struct task_record)];
};

/*
 * Opens the iterator for the processes with a name in the trie `trie` (0 or 1), and those that it
 * always lists (bpf/discovery/iter.bpf.c). task_list_close releases it. Returns 0 or -errno.
 */
int task_list_open(const struct pinned_maps *pins, uint32_t trie, struct task_list *ret_list);
void task_list_close(struct task_list *l);

/*
 * Takes the next process. Returns 1 with *ret_task; 0 after the last one; -EAGAIN at or after
 * until_ns (clock_mono_ns), once TASKS_PAUSE tasks were skipped without a record: call again in the
 * next iteration; -errno. One call skips at most that many tasks at once. Other lists may be read
 * in the meantime.
 */
int task_list_next(struct task_list *l, uint64_t until_ns, struct task_record *ret_task);

/* Why a complete list does not have a process. */
enum task_list_unlisted {
	TASK_LIST_GONE,	  /* it is not in /proc */
	TASK_LIST_KERNEL, /* a kernel thread: the iterator skips these */
	TASK_LIST_HIDDEN, /* it is in /proc: some kernels hide process 1 from iterators */
};

enum task_list_unlisted task_list_unlisted(uint32_t pid);

#endif
