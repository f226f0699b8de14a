/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* socket_abi.h: the part of the ABI (abi.h) that is about sockets of TCP. */
#ifndef TROCAR_SHARED_ABI_SOCKET_ABI_H
#define TROCAR_SHARED_ABI_SOCKET_ABI_H

#include "shared/abi/abi.h"

#define SOCKET_OPEN_MAX 16384 /* sockets that are followed at a time */
#define SOCKET_SUMS_MAX 4096  /* sets of a watch, a way, an address and a port */

/* Bounds of one pass of `sockets` over the descriptors of all processes. */
#define SOCKET_FILES_MAX    65536  /* descriptors of one process */
#define SOCKET_PASS_FILES   262144 /* descriptors of all */
#define SOCKET_PASS_SOCKETS 16384  /* sockets that are reported */

/*
 * A read of `sockets` ends after so much work: a task counts 1, a descriptor 2. It ends with
 * EAGAIN, and the next one goes on where it was; at the end of the pass it returns 0. The records
 * come through the ring `socket_looks`, which has room for those of one read.
 */
#define SOCKET_STEP_WORK   1024
#define SOCKET_LOOKS_BYTES (128 * 1024)

/* How a socket came to be: socket_ways.def. */
enum socket_way {
#define SOCKET_WAY(id, json, help) SOCKET_##id,
#include "shared/abi/socket_ways.def"
#undef SOCKET_WAY
	SOCKET_WAYS_,
};

/* What is counted: socket_counts.def. */
enum socket_count {
#define SOCKET_COUNT(id, json, help) SOCKET_##id,
#include "shared/abi/socket_counts.def"
#undef SOCKET_COUNT
	SOCKET_COUNTS_,
};

/*
 * Key of `socket_sums`: all connections of the watch with this peer, or listeners at this address.
 * The port is that of the peer where the connections were opened, else the own one: a client gets
 * its port by chance. An address of 4 bytes is the first 4, the rest is 0; one that IPv6 maps is of
 * 4 bytes.
 */
struct socket_key {
	__u32 slot; /* of the nearest watch */
	__u16 port;
	__u8 family; /* AF_INET, AF_INET6 */
	__u8 way;    /* enum socket_way */
	__u8 address[16];
};

/* Value of `socket_sums`. Times in the steps of QUEUE_BUCKETS. */
struct socket_sums {
	__u64 counts[SOCKET_COUNTS_];
	__u32 connect[QUEUE_BUCKETS]; /* of the times that SOCKET_CONNECT_NS sums up */
	__u32 life[QUEUE_BUCKETS];    /* of SOCKET_LIFE_NS */
};

/* Unreported events. */
enum socket_loss {
	SOCKET_LOST_FILES,   /* descriptors beyond the bounds of a pass: sockets without a look */
	SOCKET_LOST_SOCKETS, /* sockets beyond the bounds of a pass, or without room in the ring */
	SOCKET_LOST_OPEN,    /* sockets without room in the table of those that are followed */
	SOCKET_LOST_PEERS,   /* times that something to count had no room in `socket_sums` */
	SOCKET_LOST_SHORT,   /* of SOCKET_LOST_OPEN: the table was not full (bpf/maps/table.h) */
	SOCKET_LOSSES_,
};

/* One element, per CPU, of `socket_losses`. */
struct slot_sockets {
	__u64 rest[SOCKET_COUNTS_]; /* what had no room in `socket_sums`, or is of no known peer */
	__u64 lost[SOCKET_LOSSES_];
};

enum socket_flag {
	SOCKET_FOREIGN =
		1u << 0, /* made in a cgroup outside of the watch: its begin and end are not seen */
	SOCKET_PEER_FULL = 1u << 1, /* the peer has no room for more data */
	SOCKET_OWN_FULL = 1u << 2,  /* there is no room here for the peer's data */
};

/* What `socket_looks` carries: one socket, as it was when its process's descriptors were looked at.
 */
struct socket_record {
	__u64 inode;
	__u64 begun_ns; /* when the connection was established; 0: before the first look */
	__u64 bytes_in; /* since the connection was made, as the next one and the segments */
	__u64 bytes_out;
	__u32 slot; /* of the nearest watch of the process */
	__u32 tgid; /* of the process that has the socket, or of one of them */
	__u32 net;  /* inode of its network namespace */
	__u32 srtt_us;
	__u32 segments;
	__u32 retransmits;
	__u32 unread;  /* bytes that came and that the program has not read */
	__u32 unsent;  /* bytes that the program wrote and that are not sent */
	__u32 unacked; /* bytes that are sent and not acknowledged */
	__u32 rtt_least_us;
	__u32 queue; /* of a listener: connections that stand and are not accepted */
	__u32 queue_max;
	__u32 syn_queue; /* of a listener: connections that do not stand yet */
	__u32 drops;	 /* of a listener, since it is there: connections without room */
	__u32 in_ms;	 /* since data came last */
	__u32 out_ms;	 /* since data was sent last */
	__u16 local_port, peer_port;
	__u8 state; /* include/net/tcp_states.h */
	__u8 family, way;
	__u8 flags; /* enum socket_flag */
	__u8 local[16], peer[16];
	char comm[COMM_BYTES]; /* of tgid */
};

#endif
