/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * look_poll.h: examines the descriptors that a thread in poll or select waits for. Their list is in
 * user memory, which is read through the page tables: entries that are not resident, or after the
 * first page, are not examined. The process can write any value there, but can only make the walk
 * read the process's own files.
 */
#ifndef TROCAR_BPF_WAITS_LOOK_POLL_H
#define TROCAR_BPF_WAITS_LOOK_POLL_H

#include "bpf/waits/look_set.h"

/* Returns the file of a descriptor of the sampled thread, or NULL. */
static __always_inline const struct file *look_find_file(const struct looker *l, __u32 fd)
{
	const struct task_struct___look *task = (const void *)l->task;
	const struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **files, *file = 0;

	if (fd >= BPF_CORE_READ(table, max_fds))
		return 0;
	files = BPF_CORE_READ(table, fd);
	if (bpf_probe_read_kernel(&file, sizeof(file), &files[fd]))
		return 0;
	return file;
}

/* Examines one descriptor of looker.fetched, in which each word is a struct pollfd. */
static long look_at_polled(__u32 i, void *context)
{
	struct looker *l = *(struct looker **)context;
	const struct file *file;

	if (i >= LOOK_POLL_ITEMS)
		return 1;
	file = look_find_file(l, (__u32)l->fetched[i]);
	l->record.on.items++;
	if (file)
		look_at_member((__u64)file);
	return 0;
}

/*
 * Chooses the peer that the thread waits for. A thread that waits for only one descriptor waits for
 * the peer of that connection, as in recv(2). For unix sockets and UDP there is no other sign.
 */
static __always_inline void look_choose(struct looker *l)
{
	struct look_on *on = &l->record.on;

	look_choose_peer(l);
	if (on->items != 1 || on->cut || on->asked)
		return;
	if (on->unix_opened) {
		on->family = FAMILY_UNIX;
		on->asked = 1;
	} else if (l->epoll.udp.port) {
		on->family = l->epoll.udp.family;
		on->protocol = PROTOCOL_UDP;
		on->peer_port = l->epoll.udp.port;
		on->asked = 1;
		__builtin_memcpy(on->peer, l->epoll.udp.address, sizeof(on->peer));
	}
}

/* Examines the `count` descriptors at `list`. A global function: the verifier checks it once. */
__noinline int look_at_poll(__u64 list, __u64 count)
{
	struct looker *l = looker_get();
	const struct task_struct *task;
	__u32 n = PAGE_BYTES - (list & (PAGE_BYTES - 1));

	if (!l)
		return 0;
	look_begin_set(l, LOOK_ON_POLL);
	n /= sizeof(__u64);
	if (n > LOOK_POLL_ITEMS)
		n = LOOK_POLL_ITEMS;
	if (n > count)
		n = count;
	l->record.on.cut = n < count;
	if (!n)
		return 0;
	task = (const void *)l->task;
	l->pgd = (__u64)BPF_CORE_READ(task, mm, pgd);
	if (look_fetch(list, n * sizeof(__u64))) {
		l->record.on.cut = 1;
		return 0;
	}
	bpf_loop(n, look_at_polled, &l, 0);
	look_choose(l);
	return 0;
}

/* Examines descriptor `i` if its bit is set in looker.epoll.pending or looker.fetched. */
static long look_at_selected(__u32 i, void *context)
{
	struct looker *l = *(struct looker **)context;
	__u32 word = i / 64 % LOOK_EPOLL_DEPTH;
	const struct file *file;

	if (!((l->epoll.pending[word] | l->fetched[word]) >> (i & 63) & 1))
		return 0;
	if (l->record.on.items >= LOOK_POLL_ITEMS) {
		l->record.on.cut = 1;
		return 1;
	}
	l->record.on.items++;
	file = look_find_file(l, i);
	if (file)
		look_at_member((__u64)file);
	return 0;
}

/*
 * Reads the bits at `set` into looker.fetched; `set` NULL: no bits. Returns 0, or -1 if not
 * resident.
 */
static __always_inline long look_fetch_bits(struct looker *l, __u64 set, __u32 bytes)
{
	if (set)
		return look_fetch(set, bytes);
	__builtin_memset(l->fetched, 0, LOOK_SELECT_BITS / 8);
	return 0;
}

/*
 * Examines the descriptors below `count` with bits set at `reads` or `writes`. select(2) overwrites
 * the bits only when it returns, and the thread has not returned yet. A global function: the
 * verifier checks it once.
 */
__noinline int look_at_select(__u32 count, __u64 reads, __u64 writes)
{
	struct looker *l = looker_get();
	const struct task_struct *task;
	__u32 n = count, bytes;

	if (!l)
		return 0;
	look_begin_set(l, LOOK_ON_SELECT);
	if (n > LOOK_SELECT_BITS) {
		n = LOOK_SELECT_BITS;
		l->record.on.cut = 1;
	}
	task = (const void *)l->task;
	l->pgd = (__u64)BPF_CORE_READ(task, mm, pgd);
	bytes = (n + 63) / 64 * sizeof(__u64);
	if (look_fetch_bits(l, reads, bytes) ||
	    bpf_probe_read_kernel(l->epoll.pending, LOOK_SELECT_BITS / 8, l->fetched) ||
	    look_fetch_bits(l, writes, bytes)) {
		l->record.on.cut = 1;
		return 0;
	}
	bpf_loop(n, look_at_selected, &l, 0);
	look_choose(l);
	return 0;
}

#endif
