/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * task_list.h: the processes that the iterator `tasks` lists, in parts: the iterator stays open
 * between them and goes on at the next pid (kernel/bpf/task_iter.c). Main thread only.
 */
#ifndef TROCAR_CONSUMER_DISCOVERY_TASK_LIST_H
#define TROCAR_CONSUMER_DISCOVERY_TASK_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi/abi.h"

struct pinned_maps;

/* One list and the records of the iterator that are not taken yet. */
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
 * lists anyway (bpf/discovery/iter.bpf.c). task_list_close releases it. 0 or -errno.
 */
int task_list_open(const struct pinned_maps *pins, uint32_t trie, struct task_list *ret_list);
void task_list_close(struct task_list *l);

/*
 * Takes the next process. 1 with *ret_task; 0 after the last one; -EAGAIN when it is until_ns
 * (clock_mono_ns) or later and TASKS_PAUSE tasks were passed over without a record: call again in
 * the next turn; -errno. One call passes over at most as many tasks at once. Other lists may be
 * read meanwhile.
 */
int task_list_next(struct task_list *l, uint64_t until_ns, struct task_record *ret_task);

/* What a process is that a whole list does not have. */
enum task_list_unlisted {
	TASK_LIST_GONE,	  /* it is not in /proc */
	TASK_LIST_KERNEL, /* a thread of the kernel: the iterator passes over these */
	TASK_LIST_HIDDEN, /* it is in /proc: a kernel was seen that hides process 1 from iterators
			   */
};

enum task_list_unlisted task_list_unlisted(uint32_t pid);

#endif
