/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * look_epoll.h: goes through the set of an epoll that a thread waits in. The tree of its items is
 * walked without its lock, so each item must name its epoll: RCU, which the iterator holds, keeps
 * items that are removed what they are. The walk is bounded for each epoll and for each reading.
 */
#ifndef TROCAR_BPF_LOOK_EPOLL_H
#define TROCAR_BPF_LOOK_EPOLL_H

#include "bpf/look_set.h"

#define EPOLL_NAME "[eventpoll]"

#define WAITERS 64 /* of an epoll, that are gone through */

/* Returns whether an anonymous inode is an epoll: its name is the kernel's own. */
static __always_inline bool look_is_epoll(const struct look_on *on)
{
	static const char name[sizeof(EPOLL_NAME)] = EPOLL_NAME;

	for (__u32 i = 0; i < sizeof(name); i++)
		if (on->name[i] != name[i])
			return false;
	return true;
}

/* Keeps a subtree for later. What finds no room is not walked. */
static __always_inline void look_push(struct looker *l, const struct rb_node *node)
{
	__u32 depth = l->epoll.depth;

	if (!node)
		return;
	if (depth >= LOOK_EPOLL_DEPTH) {
		l->record.on.cut = 1;
		return;
	}
	l->epoll.pending[depth] = (__u64)node;
	l->epoll.depth = depth + 1;
}

/* Judges one item, and keeps the two subtrees below it. */
static long look_at_item(__u32 i, void *context)
{
	struct looker *l = *(struct looker **)context;
	__u32 depth = l->epoll.depth - 1;
	const struct epitem *item;
	const struct rb_node *node;

	if (depth >= LOOK_EPOLL_DEPTH)
		return 1;
	node = (const void *)l->epoll.pending[depth];
	item = (const void *)node - bpf_core_field_offset(struct epitem, rbn);
	l->epoll.depth = depth;
	look_push(l, BPF_CORE_READ(node, rb_right));
	look_push(l, BPF_CORE_READ(node, rb_left));
	/* It was removed meanwhile: what it pointed to is no subtree any more. */
	if ((__u64)BPF_CORE_READ(item, ep) != l->epoll.ep) {
		l->epoll.depth = depth;
		l->record.on.cut = 1;
		return 0;
	}
	l->record.on.items++;
	look_at_member((__u64)BPF_CORE_READ(item, ffd.file));
	return 0;
}

/* Finds the thread among those that wait in the epoll. */
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
 * Returns whether the thread waits in looker.epoll.ep: another thread may have closed the
 * descriptor and got it back for another epoll, while this one waits in the first.
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
 * Goes through the set of the epoll that looker.epoll.file is. One that many threads wait in is
 * walked once in a reading. A global function: the verifier checks it once.
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
		l->record.on = l->epoll.told;
		return 0;
	}
	look_begin_set(l, LOOK_ON_EPOLL);
	l->epoll.depth = 0;
	look_push(l, BPF_CORE_READ(ep, rbr.rb_root.rb_node));
	room = l->epoll.room;
	if (room > LOOK_EPOLL_ITEMS)
		room = LOOK_EPOLL_ITEMS;
	bpf_loop(room, look_at_item, &l, 0);
	l->epoll.room -= l->record.on.items;
	if (l->epoll.depth)
		l->record.on.cut = 1;
	look_choose_peer(l);
	l->epoll.walked = l->epoll.ep;
	l->epoll.told = l->record.on;
	return 0;
}

#endif
