/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * look_seek.h: adds the object that the sampled thread waits on to `ends`, if a process can be at
 * its other end.
 */
#ifndef TROCAR_BPF_WAITS_LOOK_SEEK_H
#define TROCAR_BPF_WAITS_LOOK_SEEK_H

#include "bpf/sockets/socket_address.h"
#include "bpf/waits/ends.h"
#include "bpf/waits/look_set.h"

/* The first port that Linux gives to clients by default (net.ipv4.ip_local_port_range). */
#define CLIENT_PORTS 32768

#define FUSE_WORD (*(const __u32 *)"fuse") /* the first bytes of the names of its file systems */

/*
 * Adds looker.end for the watch of the thread, and sets looker.is_short if the kernel has no memory
 * for it at the moment. Without space in the table the other end stays unknown, which the slot
 * counts. A global function: the verifier checks it once.
 */
__noinline int look_seek_key(void)
{
	struct looker *l = looker_get();
	struct end_value fresh = {};
	struct slot *slot;
	__u32 index;
	int error;

	if (!l)
		return 0;
	fresh.slot = index = l->look.index;
	table_get(&ends, TABLE_ENDS, index, &l->end, &fresh, &error);
	if (!error)
		return 0;
	slot = bpf_map_lookup_elem(&slots, &index);
	if (table_was_short(error))
		l->is_short = 1;
	else if (slot)
		__sync_fetch_and_add(&slot->unsought, 1);
	return 0;
}

/* Returns whether the address is of the host itself, in any network namespace. */
static __always_inline bool look_is_loopback(const struct end_key *key)
{
	const __u32 *words = (const __u32 *)key->address;

	if (key->family == FAMILY_INET)
		return key->address[0] == 127;
	return !words[0] && !words[1] && !words[2] && words[3] == __builtin_bswap32(1);
}

/* Seeks the process that the thread has asked, or is connected or connecting to. */
static __always_inline int look_seek_tcp(struct looker *l)
{
	struct look_on *on = &l->record.on;
	const struct task_struct___end *task = (const void *)l->task;
	struct end_key *key = &l->end;

	/* A server that waits for a client. */
	if (!on->asked && on->local_port < CLIENT_PORTS && on->peer_port >= CLIENT_PORTS)
		return 0;
	key->kind = END_TCP;
	key->family = on->family;
	key->port = on->peer_port;
	__builtin_memcpy(key->address, on->peer, sizeof(key->address));
	if (key->family == FAMILY_INET6 && socket_is_mapped(key->address)) {
		key->family = FAMILY_INET;
		socket_unmap(key->address);
	}
	if (!look_is_loopback(key))
		return look_seek_key();
	key->net = BPF_CORE_READ(task, nsproxy, net_ns, ns.inum);
	on->net = key->net;
	look_seek_key();
	key->kind = END_TCP_ANY;
	key->family = 0;
	__builtin_memset(key->address, 0, sizeof(key->address));
	return look_seek_key();
}

/* Seeks the other end of looker.record.on. A global function: the verifier checks it once. */
__noinline int look_seek(void)
{
	struct looker *l = looker_get();
	const struct look_on *on;

	if (!l)
		return 0;
	on = &l->record.on;
	__builtin_memset(&l->end, 0, sizeof(l->end));
	if (on->protocol == PROTOCOL_TCP && on->peer_port &&
	    (on->family == FAMILY_INET || on->family == FAMILY_INET6)) {
		return look_seek_tcp(l);
	}
	if (on->kind == LOOK_ON_FILE && on->state == LOOK_LOCK_FILE) {
		l->end.kind = END_LOCK;
		l->end.inode = on->address;
		return on->address ? look_seek_key() : 0;
	}
	if (on->kind != LOOK_ON_PIPE &&
	    (on->kind != LOOK_ON_FILE || *(const __u32 *)on->fs != FUSE_WORD))
		return 0;
	l->end.device = on->device;
	l->end.kind = END_FUSE;
	if (on->kind == LOOK_ON_PIPE) {
		l->end.kind = on->state ? END_READER : END_WRITER;
		l->end.inode = on->inode;
	}
	return look_seek_key();
}

#endif
