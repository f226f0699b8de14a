/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* look_abi.h: the part of the ABI (abi.h) that is about looks at threads that wait. */
#ifndef TROCAR_SHARED_ABI_LOOK_ABI_H
#define TROCAR_SHARED_ABI_LOOK_ABI_H

#include "shared/abi/abi.h"

enum look_flag {
	LOOK_AS_BEFORE =
		1u << 0,	 /* it has not run since its last report: only a struct look_head */
	LOOK_RUNNABLE = 1u << 1, /* it waits for a CPU, else for something else */
	LOOK_IO = 1u << 2,	 /* it waits for a device, as pressure counts it (TSK_IOWAIT) */
	LOOK_MEMORY = 1u << 3,	 /* it is in a memory stall, as pressure counts it */
	LOOK_PAUSE = 1u << 4,	 /* no thread: the rest of the record is empty */
	LOOK_STOPPED = 1u << 5,	 /* by a signal */
	LOOK_TRACED = 1u << 6,	 /* stopped by a tracer */
	LOOK_FROZEN = 1u << 7,	 /* by the freezer of its cgroup, or of a suspend */
	LOOK_FAULT = 1u << 8,	 /* in no system call, and in a page fault */
	LOOK_FLAGS_END_ = 1u << 9,
};

/* One of these: what halts a thread from outside. It has no call, and waits on nothing else. */
#define LOOK_HALTED (LOOK_STOPPED | LOOK_TRACED | LOOK_FROZEN)

/*
 * A record of `looks` begins with it: one thread of a watched cgroup that does not run. The length
 * is a multiple of 8. As with `tasks`, after each LOOKS_PAUSE tasks comes an empty record that ends
 * a read of LOOKS_READ_BYTES.
 */
struct look_head {
	__u32 bytes; /* of the whole record */
	__u32 flags; /* enum look_flag */
	__u32 tid;
	__u32 slot; /* of the nearest watch */
	__u64 time_ns;
};

#define LOOKS_PAUSE	 1024
#define LOOKS_READ_BYTES 2048

#define LOOK_NO_SYSCALL (-1)

enum look_on_kind {
	LOOK_ON_NOTHING, /* that is known */
	LOOK_ON_FILE,	 /* a regular file, directory or block device */
	LOOK_ON_PIPE,
	LOOK_ON_SOCKET,
	LOOK_ON_OTHER, /* another descriptor: eventfd, terminal, ... */
	LOOK_ON_FUTEX,
	LOOK_ON_CHILD,
	LOOK_ON_EPOLL,
	LOOK_ON_POLL,
	LOOK_ON_SELECT,
	LOOK_ON_TIMER,
	LOOK_ON_SEMAPHORES, /* a set of System V */
	LOOK_ON_TRACER,	    /* the process `number`, called `name` */
	LOOK_ON_COUNT_
};

/* What is in the set of an epoll, poll or select: look_members.def. */
enum look_member {
#define LOOK_MEMBER(id, json, help) LOOK_MEMBER_##id,
#include "shared/abi/look_members.def"
#undef LOOK_MEMBER
	LOOK_MEMBERS_
};

/* Which end of a connection a unix socket is. */
enum look_end {
	LOOK_END_UNKNOWN, /* neither end has an address: a pair */
	LOOK_END_OPENED,  /* its peer has one: it was connected from here */
	LOOK_END_SERVED,  /* it has one itself: it was accepted, or bound */
};

/* Where a path ends upwards. */
enum look_path_end {
	LOOK_PATH_NONE,	    /* there was no look */
	LOOK_PATH_WHOLE,    /* at the root of the thread, or of the namespace of the file's mount */
	LOOK_PATH_DETACHED, /* at a file system that is mounted nowhere, or has no names */
	LOOK_PATH_DEEP,	    /* it has more names, or mounts, than were walked */
	LOOK_PATH_RENAMED,  /* a part of it was renamed meanwhile: there is no path */
	LOOK_PATH_ENDS_
};

#define LOOK_NAME_BYTES	   32
#define LOOK_FS_BYTES	   16
#define LOOK_PATH_BYTES	   320	   /* with the NUL; the longest name has 255 */
#define LOOK_PATH_HEAD	   63	   /* before the left-out middle, at most */
#define LOOK_PATH_PARTS	   64	   /* names */
#define LOOK_PATH_NO_POINT 0xffffu /* the mount point has lost a part in the middle */

/* Bounds of walks over epolls (bpf/waits/look_epoll.h): items of one, and of all in a reading. */
#define LOOK_EPOLL_ITEMS 1024
#define LOOK_PASS_ITEMS	 8192
#define LOOK_POLL_ITEMS	 16 /* descriptors of poll and select */
#define LOOK_SELECT_BITS 1024

/* A jiffy, TCP's unit of time, where it is not known: with CONFIG_HZ=250. */
#define LOOK_TICK_NS 4000000

/* What was sent longer ago than this and not answered is a stream, not a question. */
#define LOOK_ASKED_NS 60000000000ull

/* What a thread waits on. What the kind does not have is 0. */
struct look_on {
	__u64 address; /* of the futex, in the process's memory */
	__u64 inode;   /* of the descriptor's file */
	__u32 device;  /* kernel's dev_t */
	__u32 kind;    /* enum look_on_kind */
	/*
	 * Of the descriptor, wait4's first argument, a clock, a set's id, or the operation of
	 * futex(2).
	 */
	__s32 number;
	__u16 family, type, protocol;
	__u16 local_port, peer_port;
	/* Of TCP (include/net/tcp_states.h), its like of other sockets; of a timer 1: it runs */
	__u8 state;
	__u8 end;		    /* enum look_end, of a unix socket */
	__u8 local[16], peer[16];   /* 4 bytes of AF_INET, 16 of AF_INET6 */
	char name[LOOK_NAME_BYTES]; /* last part of the path, cut, or its kind: "[eventpoll]" */
	/*
	 * Of an epoll, poll or select, as seen when it was looked at. family, protocol, peer and
	 * peer_port are of the peer that most connections wait for; 0: they wait for no peer. Of
	 * poll and select with one descriptor alone, a unix socket with LOOK_END_OPENED or a socket
	 * of UDP that is connected, they are that one's: a thread that waits for it so waits for
	 * its peer.
	 */
	__u64 longest_ns; /* since something was sent to the peer that it has not answered; of a
			   * timer: until it ends */
	__u32 items;	  /* of its set that were walked */
	__u32 sockets;	  /* of them: TCP connections that were opened from here */
	__u32 asked;	  /* of these: that wait for an answer of the peer */
	__u32 others;	  /* of these: that wait for other peers */
	__u32 cut;	  /* 1: there may be more items than were walked */
	/*
	 * Unix sockets on which something was sent that the other end has not read; of a unix
	 * socket that is no set 1 or 0.
	 */
	__u32 unread;
	__u32 unix_opened; /* unix sockets with LOOK_END_OPENED in the set */
	__u32 peer_pid;	   /* of a unix socket: the opener of the other end; 0: not known */
	__u16 kinds[LOOK_MEMBERS_]; /* numbers of the items by kind */
	char peer_comm[COMM_BYTES]; /* of peer_pid; empty: it has ended */
	/*
	 * Of a file its path, as the thread that waits names it. Where it is too long, path_cut
	 * bytes are left out behind the first path_head: whole names, each with its slash.
	 *
	 * Of a unix socket its address, or that of its peer if it has none; an abstract one begins
	 * with '@' and ends at its first NUL. Of a set that of the first one with LOOK_END_OPENED.
	 */
	char path[LOOK_PATH_BYTES];
	__u32 path_cut;
	__u16 path_head;
	__u16 point_bytes; /* of the path, its mount point; 0: it is mounted at "/" */
	__u8 path_end;	   /* enum look_path_end */
	__u8 deleted;	   /* 1: the file has lost the name that the path ends in */
	__u8 pad[6];
	char fs[LOOK_FS_BYTES]; /* type of the file system of a file */
};

/* With its frames, as in the samples ring: sample.cpu and sample.seq are 0. */
struct look_record {
	struct look_head head;
	__u64 switches; /* that the thread has made: it has not run while it is the same */
	__s32 syscall; /* its number on this machine; LOOK_NO_SYSCALL: in none, or in one of 32 bits
			*/
	__u32 pad;
	struct look_on on; /* by the rows of shared/abi/wait_on.def */
	struct sample sample;
};

#endif
