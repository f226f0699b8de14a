// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * socket_state.bpf.c: counts the begin, the failure and the end of TCP connections of watched
 * cgroups, and their bytes by then. The broker attaches the program for the duration of a session.
 * It runs where the kernel changes the state of a socket, mostly in an interrupt. So the cgroup is
 * that of the socket (sk_cgrp_data): the cgroup of the process that created it, or of its listener.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/sockets/socket_sums.h"
#include "bpf/watch/scope.h"
#include "bpf/watch/watch_captured.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Returns the count for a connection attempt that failed with `error`. */
static __always_inline __u32 failure_of(int error)
{
	switch (error) {
	case 0:
		return SOCKET_GIVEN_UP;
	case ECONNREFUSED:
		return SOCKET_REFUSED;
	case ETIMEDOUT:
		return SOCKET_TIMED_OUT;
	default:
		return SOCKET_FAILED;
	}
}

/* Handles a socket that begins to connect. Its local port is not known yet. */
static __always_inline int begin_connect(__u64 address, __u32 index)
{
	struct socket_open open = { .slot = index, .way = SOCKET_OPENED };
	int error;

	open.asked_ns = bpf_ktime_get_ns();
	error = bpf_map_update_elem(&socket_open, &address, &open, BPF_ANY);
	if (error)
		socket_count_unfollowed(index, error);
	return 0;
}

/*
 * Handles an established connection. If an accepted connection already has an entry in the table,
 * the entry belongs to an earlier socket of which the end was missed.
 */
static __noinline int begin_connection(const void *socket, __u64 address, __u32 index, bool opened)
{
	struct socket_open fresh = { .slot = index }, *open;
	struct socket_ends ends;
	struct socket_key key;
	struct socket_sums *sums;
	int error;

	fresh.begun_ns = bpf_ktime_get_ns();
	fresh.way = opened ? SOCKET_OPENED : SOCKET_ACCEPTED;
	/* The segment that established it counts as a sent byte. */
	socket_read_counted(socket, TCP_ESTABLISHED, &fresh.counted);
	open = bpf_map_lookup_elem(&socket_open, &address);
	if (opened && open && !open->begun_ns)
		fresh.asked_ns = open->asked_ns;
	error = bpf_map_update_elem(&socket_open, &address, &fresh, BPF_ANY);
	if (error)
		socket_count_unfollowed(index, error);
	socket_read_ends(socket, &ends);
	socket_make_key(&ends, index, fresh.way, &key);
	sums = socket_sums_of(&key);
	if (!sums)
		socket_count_lost(index, SOCKET_LOST_PEERS, 1);
	socket_add(sums, index, SOCKET_BEGUN, 1);
	if (!fresh.asked_ns)
		return 0;
	socket_add(sums, index, SOCKET_CONNECT_NS, fresh.begun_ns - fresh.asked_ns);
	if (sums)
		time_bucket_count(sums->connect, QUEUE_BUCKETS, fresh.begun_ns - fresh.asked_ns);
	return 0;
}

/* Adds the end of a followed connection or listener. */
static __always_inline void add_end(struct socket_open *open, const struct socket_key *key,
				    int error)
{
	struct socket_sums *sums = socket_sums_of(key);
	__u64 lasted_ns = bpf_ktime_get_ns() - open->begun_ns;

	socket_add(sums, key->slot, SOCKET_ENDED, 1);
	if (error)
		socket_add(sums, key->slot, error == ETIMEDOUT ? SOCKET_LOST : SOCKET_RESET, 1);
	if (!open->begun_ns)
		return;
	socket_add(sums, key->slot, SOCKET_LIFE_NS, lasted_ns);
	if (sums)
		time_bucket_count(sums->life, QUEUE_BUCKETS, lasted_ns);
}

/* Handles a socket that is closed for good, from any state. */
static __noinline int end_socket(const void *socket, __u64 address, __u32 index, int oldstate)
{
	struct socket_open *open = bpf_map_lookup_elem(&socket_open, &address);
	const struct sock___socket *sk = socket;
	struct socket_counted counted;
	struct socket_ends ends;
	struct socket_key key;
	int error = BPF_CORE_READ(sk, sk_err);

	socket_read_ends(socket, &ends);
	if (oldstate == TCP_SYN_SENT) {
		socket_make_key(&ends, index, SOCKET_OPENED, &key);
		socket_add(socket_sums_of(&key), index, failure_of(error), 1);
	} else if (!open && oldstate != TCP_LISTEN && oldstate != TCP_SYN_RECV) {
		/* The direction of the connection is no longer known. */
		socket_add_rest(index, SOCKET_ENDED, 1);
		socket_add_rest(index, SOCKET_UNSEEN, 1);
	} else if (open) {
		if (oldstate == TCP_LISTEN)
			socket_read_listener(socket, &counted);
		else
			socket_read_counted(socket, oldstate, &counted);
		socket_make_key(&ends, open->slot, open->way, &key);
		socket_settle(open, &key, &counted);
		if (oldstate != TCP_LISTEN)
			add_end(open, &key, error);
	}
	bpf_map_delete_elem(&socket_open, &address);
	return 0;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(socket_state, const struct sock___socket *sk, int oldstate, int newstate)
{
	const struct control *c = control_get();
	struct cgroup *cgroup;
	__u32 index;

	if ((newstate != TCP_SYN_SENT && newstate != TCP_ESTABLISHED && newstate != TCP_CLOSE) ||
	    oldstate == newstate || sk->sk_protocol != PROTOCOL_TCP ||
	    !bpf_core_field_exists(sk->sk_cgrp_data.cgroup))
		return 0;
	/* An interrupt may have interrupted an unrelated thread, so take the socket's cgroup. */
	cgroup = sk->sk_cgrp_data.cgroup;
	if (!c || !cgroup || !watch_lookup(cgroup->kn->id, &index) || !watch_is_captured(index) ||
	    !scope_allows(cgroup) || watch_lookup_is_stale(c, bpf_ktime_get_ns()))
		return 0;
	if (newstate == TCP_SYN_SENT)
		return begin_connect((__u64)sk, index);
	if (newstate == TCP_ESTABLISHED)
		return begin_connection(sk, (__u64)sk, index, oldstate == TCP_SYN_SENT);
	return end_socket(sk, (__u64)sk, index, oldstate);
}
