/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * look_epoll.h: examines the set of an epoll that a thread waits in. The tree of its items is
 * walked without its lock. So each item must name its epoll, and no item is examined twice. RCU,
 * which the iterator holds, keeps removed items intact. The walk has a limit per epoll and per pass
 * over all threads. Each item takes two steps.
 */
#ifndef TROCAR_BPF_WAITS_LOOK_EPOLL_H
#define TROCAR_BPF_WAITS_LOOK_EPOLL_H

#include "bpf/waits/look_set.h"

#define EPOLL_NAME "[eventpoll]"

#define WAITERS 64 /* maximum number of an epoll's waiters that are searched */

/* Returns whether an anonymous inode is an epoll. The kernel sets its name. */
static __always_inline bool look_is_epoll(const struct look_on *on)
{
	static const char name[sizeof(EPOLL_NAME)] = EPOLL_NAME;

	for (__u32 i = 0; i < sizeof(name); i++)
		if (on->name[i] != name[i])
			return false;
	return true;
}

/* Descends into the left subtree: keeps the item for later, after everything to the left of it. */
static __always_inline void look_descend(struct looker *l, const struct rb_node *node)
{
	const struct epitem *item = (const void *)node - bpf_core_field_offset(struct epitem, rbn);
	__u32 depth = l->epoll.depth;

	l->epoll.at = 0;
	/* The item was removed in the meantime: its pointers no longer lead to a subtree. */
	if (depth >= LOOK_EPOLL_DEPTH || (__u64)BPF_CORE_READ(item, ep) != l->epoll.ep) {
		l->record.on.cut = 1;
		return;
	}
	l->epoll.pending[depth] = (__u64)node;
	l->epoll.depth = depth + 1;
	l->epoll.at = (__u64)BPF_CORE_READ(node, rb_left);
}

/*
 * Examines an item if it is after the last one in the order of the tree (ep_cmp_ffd of
 * fs/eventpoll.c). A concurrent change of the tree may lead back to an item that was already
 * examined.
 */
static __always_inline void look_at_item(struct looker *l, const struct epitem *item)
{
	__u64 file = (__u64)BPF_CORE_READ(item, ffd.file);
	__s32 fd = BPF_CORE_READ(item, ffd.fd);

	if (file < l->epoll.last_file || (file == l->epoll.last_file && fd <= l->epoll.last_fd)) {
		l->record.on.cut = 1;
		return;
	}
	l->epoll.last_file = file;
	l->epoll.last_fd = fd;
	l->record.on.items++;
	look_at_member(file);
}

/*
 * One step of the walk: descends to the left or, if there is nothing to the left, examines an item
 * and moves to its right.
 */
static long look_step(__u32 i, void *context)
{
	struct looker *l = *(struct looker **)context;
	const struct rb_node *node = (const void *)l->epoll.at;
	__u32 depth = l->epoll.depth - 1;

	if (node) {
		look_descend(l, node);
		return 0;
	}
	if (depth >= LOOK_EPOLL_DEPTH)
		return 1;
	l->epoll.depth = depth;
	node = (const void *)l->epoll.pending[depth];
	look_at_item(l, (const void *)node - bpf_core_field_offset(struct epitem, rbn));
	l->epoll.at = (__u64)BPF_CORE_READ(node, rb_right);
	return 0;
}

/* Searches for the thread among the waiters of the epoll. */
static long look_at_waiter(__u32 i, void *context)
{
	struct looker *l = *(struct looker **)context;
	const struct eventpoll *ep = (const void *)l->epoll.ep;
	const struct list_head *at = (const void *)l->epoll.waiter;
	const struct wait_queue_entry *entry;

	if (!at || at == &ep->wq.head)
		return 1;
	entry = (const void *)at - bpf_core_field_offset(struct wait_queue_entry, entry);
	l->epoll.waiter = (__u64)BPF_CORE_READ(at, next);
	if ((__u64)BPF_CORE_READ(entry, private) != l->task)
		return 0;
	l->epoll.waits = 1;
	return 1;
}

/*
 * Returns whether the thread waits in looker.epoll.ep. Another thread may have closed the
 * descriptor and reused it for another epoll, while this one waits in the first.
 */
static __always_inline bool look_waits_in(struct looker *l)
{
	const struct eventpoll *ep = (const void *)l->epoll.ep;

	l->epoll.waits = 0;
	l->epoll.waiter = (__u64)BPF_CORE_READ(ep, wq.head.next);
	bpf_loop(WAITERS, look_at_waiter, &l, 0);
	return l->epoll.waits;
}

/*
 * Examines the set of the epoll in looker.epoll.file. An epoll with several waiters in a row is
 * walked once per pass. A global function: the verifier checks it once.
 */
__noinline int look_at_epoll(void)
{
	struct looker *l = looker_get();
	const struct eventpoll *ep;
	const struct file *file;
	__u32 room;

	if (!l)
		return 0;
	file = (const void *)l->epoll.file;
	ep = BPF_CORE_READ(file, private_data);
	l->epoll.ep = (__u64)ep;
	if (!look_waits_in(l)) {
		l->record.on.cut = 1;
		return 0;
	}
	if (l->epoll.walked == l->epoll.ep) {
		l->record.on = l->epoll.found;
		return 0;
	}
	look_begin_set(l, LOOK_ON_EPOLL);
	l->epoll.depth = 0;
	l->epoll.last_file = 0;
	l->epoll.at = (__u64)BPF_CORE_READ(ep, rbr.rb_root.rb_node);
	room = l->epoll.room;
	if (room > LOOK_EPOLL_ITEMS)
		room = LOOK_EPOLL_ITEMS;
	bpf_loop(2 * room, look_step, &l, 0);
	l->epoll.room -= l->record.on.items;
	if (l->epoll.depth || l->epoll.at)
		l->record.on.cut = 1;
	look_choose_peer(l);
	l->epoll.walked = l->epoll.ep;
	l->epoll.found = l->record.on;
	return 0;
}

#endif
