/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* socket_abi.h: the part of the ABI (abi.h) that is about TCP sockets. */
#ifndef TROCAR_SHARED_ABI_SOCKET_ABI_H
#define TROCAR_SHARED_ABI_SOCKET_ABI_H

#include "shared/abi/abi.h"

#define SOCKET_OPEN_MAX 16384 /* sockets that are tracked at a time */
#define SOCKET_SUMS_MAX 4096  /* combinations of watch, way, address and port */

/* Limits of one pass of the iterator `sockets` over the descriptors of all processes. */
#define SOCKET_FILES_MAX    65536  /* descriptors of one process */
#define SOCKET_PASS_FILES   262144 /* descriptors of all processes */
#define SOCKET_PASS_SOCKETS 16384  /* reported sockets */

/*
 * A read of `sockets` ends with EAGAIN after SOCKET_STEP_WORK units of work: a task counts 1, a
 * descriptor 2. The next read continues from there; at the end of the pass a read returns 0. The
 * records arrive in the ring `socket_looks`, which has space for the records of one read.
 */
#define SOCKET_STEP_WORK   1024
#define SOCKET_LOOKS_BYTES (128 * 1024)

/* The origin of a socket: socket_ways.def. */
enum socket_way {
#define SOCKET_WAY(id, json, help) SOCKET_##id,
#include "shared/abi/socket_ways.def"
#undef SOCKET_WAY
	SOCKET_WAYS_,
};

/* The counts of connections: socket_counts.def. */
enum socket_count {
#define SOCKET_COUNT(id, json, help) SOCKET_##id,
#include "shared/abi/socket_counts.def"
#undef SOCKET_COUNT
	SOCKET_COUNTS_,
};

/*
 * Key of `socket_sums`: all connections of the watch with this peer, or its listeners at this
 * address. `port` is the peer's port for outgoing connections, else the local port, because a
 * client's port is arbitrary. An address of 4 bytes is in the first 4 bytes, the rest is 0; an
 * IPv4-mapped IPv6 address is stored as 4 bytes.
 */
struct socket_key {
	__u32 slot; /* of the nearest watch */
	__u16 port;
	__u8 family; /* AF_INET, AF_INET6 */
	__u8 way;    /* enum socket_way */
	__u8 address[16];
};

/* Value of `socket_sums`. Times are counted in the steps of QUEUE_BUCKETS. */
struct socket_sums {
	__u64 counts[SOCKET_COUNTS_];
	__u32 connect[QUEUE_BUCKETS]; /* counts of the times that SOCKET_CONNECT_NS adds up */
	__u32 life[QUEUE_BUCKETS];    /* counts of the times of SOCKET_LIFE_NS */
};

/* Unreported events. */
enum socket_loss {
	SOCKET_LOST_FILES,   /* descriptors beyond the limits of a pass: sockets not sampled */
	SOCKET_LOST_SOCKETS, /* sockets beyond the limits of a pass, or of the full ring */
	SOCKET_LOST_OPEN,    /* sockets that did not fit into the table of tracked sockets */
	SOCKET_LOST_PEERS,   /* how often a count did not fit into `socket_sums` */
	SOCKET_LOST_SHORT, /* part of SOCKET_LOST_OPEN: the table was not full (bpf/maps/table.h) */
	SOCKET_LOSSES_,
};

/* One element, per CPU, of `socket_losses`. */
struct slot_sockets {
	__u64 rest[SOCKET_COUNTS_]; /* counts that did not fit into `socket_sums`, or of no known
				       peer */
	__u64 lost[SOCKET_LOSSES_];
};

enum socket_flag {
	SOCKET_FOREIGN =
		1u << 0, /* created in a cgroup outside the watch: its begin and end are not seen */
	SOCKET_PEER_FULL = 1u << 1, /* the peer has no space for more data */
	SOCKET_OWN_FULL = 1u << 2,  /* there is no space here for more data of the peer */
};

/* What `socket_looks` carries: one socket at the time of the snapshot. */
struct socket_record {
	__u64 inode;
	__u64 begun_ns; /* when the connection was established; 0: before the first snapshot */
	__u64 bytes_in; /* since the connection began, as for bytes_out and segments */
	__u64 bytes_out;
	__u32 slot; /* of the nearest watch of the process */
	__u32 tgid; /* the process that has the socket, or one of them */
	__u32 net;  /* inode of its network namespace */
	__u32 srtt_us;
	__u32 segments;
	__u32 retransmits;
	__u32 unread;  /* received bytes that the program has not read */
	__u32 unsent;  /* bytes that the program wrote and that are not sent yet */
	__u32 unacked; /* sent bytes that are not acknowledged */
	__u32 rtt_least_us;
	__u32 queue; /* of a listener: established connections that are not accepted */
	__u32 queue_max;
	__u32 syn_queue; /* of a listener: connections that are not established yet */
	__u32 drops;	 /* of a listener, since it exists: connections dropped for lack of space */
	__u32 in_ms;	 /* time since data last arrived */
	__u32 out_ms;	 /* time since data was last sent */
	__u16 local_port, peer_port;
	__u8 state; /* include/net/tcp_states.h */
	__u8 family, way;
	__u8 flags; /* enum socket_flag */
	__u8 local[16], peer[16];
	char comm[COMM_BYTES]; /* of tgid */
};

#endif
