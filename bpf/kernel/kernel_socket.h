/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel_socket.h: the members of TCP sockets that the programs read, and the structures that lead
 * to the descriptors of a process, declared as in kernel.h. Read them with BPF_CORE_READ only,
 * except the members of struct sock___socket, which a tracepoint passes. Sources:
 * include/net/{sock,inet_sock,inet_connection_sock,request_sock}.h,
 * include/linux/{tcp,fdtable,cgroup-defs}.h of Linux 6.1 to 7.2.
 */
#ifndef TROCAR_BPF_KERNEL_KERNEL_SOCKET_H
#define TROCAR_BPF_KERNEL_KERNEL_SOCKET_H

#include "bpf/kernel/kernel.h"

/* include/net/tcp_states.h */
#define TCP_ESTABLISHED 1
#define TCP_SYN_SENT	2
#define TCP_SYN_RECV	3
#define TCP_FIN_WAIT1	4
#define TCP_FIN_WAIT2	5
#define TCP_TIME_WAIT	6
#define TCP_CLOSE	7
#define TCP_CLOSE_WAIT	8
#define TCP_LAST_ACK	9
#define TCP_LISTEN	10
#define TCP_CLOSING	11

/* enum sock_flags of include/net/sock.h: the peer has sent its FIN. */
#define SOCK_DONE (1u << 1)

#define FAMILY_INET  2
#define FAMILY_INET6 10
#define PROTOCOL_TCP 6

/* enum tcp_chrono of include/net/tcp.h: the limit that a connection with data to send waits for. */
#define TCP_CHRONO_RWND_LIMITED 2

/* uapi asm-generic/errno.h: equal on x86 and arm64. */
#define ECONNREFUSED 111
#define ETIMEDOUT    110

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common___socket {
	unsigned short skc_family;
	possible_net_t skc_net;	 /* with CONFIG_NET_NS */
	unsigned long skc_flags; /* bits of enum sock_flags; in an anonymous union in the kernel */
};

/* With CONFIG_SOCK_CGROUP_DATA. */
struct sock_cgroup_data {
	struct cgroup *cgroup; /* the cgroup2 group of the creating process or listener */
};

struct sock___socket {
	struct sock_common___socket __sk_common;
	__u16 sk_protocol;
	int sk_err;
	atomic_t sk_drops;
	__u32 sk_ack_backlog, sk_max_ack_backlog;
	struct sock_cgroup_data sk_cgrp_data;
};

struct inet_sock {
	unsigned short inet_sport; /* big endian */
};

struct request_sock_queue {
	atomic_t qlen;
};

struct inet_connection_sock___socket {
	struct request_sock_queue icsk_accept_queue;
	struct {
		__u16 rcv_mss;
		__u32 lrcvtime;
	} icsk_ack;
};

struct minmax_sample {
	__u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock___socket {
	__u64 bytes_received, bytes_acked;
	__u32 data_segs_out, total_retrans;
	__u32 write_seq, snd_nxt, snd_una;
	__u32 rcv_nxt, copied_seq, rcv_wup, rcv_wnd;
	__u32 srtt_us;	       /* in units of 1/8 us */
	struct minmax rtt_min; /* minimum of the last minutes; ~0: none yet */
	__u32 lsndtime;
	__u8 chrono_type : 2;		    /* a byte since 6.12 */
	__u32 chrono_start, chrono_stat[3]; /* in jiffies; chrono_stat is indexed by type - 1 */
};

struct fdtable___socket {
	unsigned int max_fds;
	struct file **fd;
	unsigned long *open_fds;
};

struct files_struct___socket {
	struct fdtable___socket *fdt;
};

struct task_struct___socket {
	struct files_struct___socket *files;
	struct task_struct___socket *group_leader;
};

#pragma clang attribute pop

#endif
