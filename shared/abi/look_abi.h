/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* look_abi.h: the part of the ABI (abi.h) that is about off-CPU samples of threads ("looks"). */
#ifndef TROCAR_SHARED_ABI_LOOK_ABI_H
#define TROCAR_SHARED_ABI_LOOK_ABI_H

#include "shared/abi/abi.h"

/* The threads that a pass of `looks` reports. */
enum look_mode {
	LOOK_SESSIONS = 0, /* by slot.looked */
	LOOK_ALL = 1,	   /* of all watches */
	/* As LOOK_SESSIONS; one whose last report had a process in peer_pid has a new report. */
	LOOK_HELD_AGAIN = 2,
};

enum look_flag {
	LOOK_AS_BEFORE =
		1u << 0, /* the thread has not run since its last report: only a struct look_head */
	LOOK_RUNNABLE = 1u << 1, /* it waits for a CPU; if not set, for something else */
	LOOK_IO = 1u << 2,	 /* it waits for a device, as PSI counts it (TSK_IOWAIT) */
	LOOK_MEMORY = 1u << 3,	 /* it is in a memory stall, as PSI counts it */
	LOOK_PAUSE = 1u << 4,	 /* no thread: the rest of the record is empty */
	LOOK_STOPPED = 1u << 5,	 /* stopped by a signal */
	LOOK_TRACED = 1u << 6,	 /* stopped by a tracer */
	LOOK_FROZEN = 1u << 7,	 /* frozen with its cgroup, or by a suspend */
	LOOK_FAULT = 1u << 8,	 /* in a page fault, outside a system call */
	LOOK_FLAGS_END_ = 1u << 9,
};

/*
 * Flags of a thread that is halted from outside. It has one of them, no system call, and no other
 * object to wait on.
 */
#define LOOK_HALTED (LOOK_STOPPED | LOOK_TRACED | LOOK_FROZEN)

/*
 * The first part of a record of `looks`: one thread of a watched cgroup that does not run. The
 * length of a record is a multiple of 8. As `tasks` does, `looks` writes an empty record after each
 * LOOKS_PAUSE tasks, which ends a read of LOOKS_READ_BYTES.
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

#define LOOK_NICE_LEAST (-20)
#define LOOK_NICE_MOST	19
#define LOOK_NICES	40

enum look_on_kind {
	LOOK_ON_NOTHING, /* the object is not known */
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
	LOOK_ON_SEMAPHORES, /* a System V semaphore set */
	LOOK_ON_TRACER,	    /* the process `number`, called `name` */
	LOOK_ON_MMAP_LOCK,  /* the kernel's lock of the process's address space */
	LOOK_ON_SENDER,	    /* of the signal that stopped the thread: `number`, called `name` */
	LOOK_ON_COUNT_
};

/* The kind of the lock that a thread waits for: of a futex, a file, or an address space. */
enum look_lock {
	LOOK_LOCK_UNKNOWN,
	LOOK_LOCK_EVENT,   /* a futex that is no lock: a condition variable, a semaphore, ... */
	LOOK_LOCK_MUTEX,   /* held by one thread */
	LOOK_LOCK_RWLOCK,  /* held for writing by one thread */
	LOOK_LOCK_READERS, /* held for reading */
	LOOK_LOCK_FILE,	   /* of flock(2) or fcntl(2) */
	LOOK_LOCKS_
};

/* The kinds of descriptors in the set of an epoll, poll or select: look_members.def. */
enum look_member {
#define LOOK_MEMBER(id, json, help) LOOK_MEMBER_##id,
#include "shared/abi/look_members.def"
#undef LOOK_MEMBER
	LOOK_MEMBERS_
};

/* Which end of a connection a Unix socket is. */
enum look_end {
	LOOK_END_UNKNOWN, /* neither end has an address: a socket pair */
	LOOK_END_OPENED,  /* the peer has an address: this end connected */
	LOOK_END_SERVED,  /* this end has an address: it was accepted, or bound */
};

/* The upper end of a path, where the walk towards the root ended. */
enum look_path_end {
	LOOK_PATH_NONE,	    /* no path was read */
	LOOK_PATH_WHOLE,    /* at the root of the thread, or of the namespace of the file's mount */
	LOOK_PATH_DETACHED, /* at a file system that is not mounted anywhere, or has no names */
	LOOK_PATH_DEEP,	    /* the path has more names, or mounts, than the walk allows */
	LOOK_PATH_RENAMED,  /* a part of it was renamed during the walk: there is no path */
	LOOK_PATH_ENDS_
};

#define LOOK_NAME_BYTES	   32
#define LOOK_FS_BYTES	   16
#define LOOK_PATH_BYTES	   320	   /* NUL included; the longest name has 255 */
#define LOOK_PATH_HEAD	   63	   /* the most bytes before an omitted middle */
#define LOOK_PATH_PARTS	   64	   /* the most names in a path */
#define LOOK_PATH_NO_POINT 0xffffu /* the mount point is in an omitted middle */

/*
 * Bounds of walks over epolls (bpf/waits/look_epoll.h): items of one epoll, and of all epolls in
 * one reading.
 */
#define LOOK_EPOLL_ITEMS 1024
#define LOOK_PASS_ITEMS	 8192
#define LOOK_POLL_ITEMS	 16 /* descriptors of poll and select */
#define LOOK_SELECT_BITS 1024

/* A jiffy, TCP's unit of time, with CONFIG_HZ=250: used if the real value is not known. */
#define LOOK_TICK_NS 4000000

/* Data that was sent longer ago than this without an answer is a stream, not a request. */
#define LOOK_ASKED_NS 60000000000ull

/* The object that a thread waits on. Members that the kind does not have are 0. */
struct look_on {
	/*
	 * Of the futex, in the process's memory; of a file's lock that belongs to an open file: the
	 * hidden address (hidden_address.h) of that file.
	 */
	__u64 address;
	__u64 inode;  /* of the descriptor's file */
	__u32 device; /* kernel's dev_t */
	__u32 kind;   /* enum look_on_kind */
	/*
	 * Number of the descriptor, first argument of wait4(2), clock, id of a semaphore set, or
	 * operation of futex(2).
	 */
	__s32 number;
	__u16 family, type, protocol;
	__u16 local_port, peer_port;
	/*
	 * TCP state (include/net/tcp_states.h), or of another socket its like; timer: 1, it runs;
	 * pipe: 1, it is full; futex, file and address space: enum look_lock.
	 */
	__u8 state;
	__u8 end;		    /* enum look_end, of a Unix socket */
	__u8 local[16], peer[16];   /* 4 bytes of AF_INET, 16 of AF_INET6 */
	char name[LOOK_NAME_BYTES]; /* last path component, cut, or the kind: "[eventpoll]" */
	/*
	 * For epoll, poll and select, at the time of the sample. family, protocol, peer and
	 * peer_port are those of the peer that most connections wait for; 0: they wait for no peer.
	 * If poll or select has only one descriptor, and that is a Unix socket with LOOK_END_OPENED
	 * or a connected UDP socket, they are those of its peer: the thread waits for that peer.
	 * A TCP connection that was opened from here has asked 1 while the peer owes an answer.
	 */
	__u64 longest_ns; /* time since data was sent to the peer that it has not answered; timer:
			     time until it ends */
	__u32 items;	  /* items of the set that were walked */
	__u32 sockets;	  /* part of items: TCP connections that were opened from here */
	__u32 asked;	  /* part of sockets: those that wait for an answer of the peer */
	__u32 others;	  /* part of sockets: those that wait for other peers */
	__u32 cut;	  /* 1: there may be more items than were walked */
	/*
	 * Unix sockets with sent data that the other end has not read; for a single Unix socket 1
	 * or 0.
	 */
	__u32 unread;
	__u32 unix_opened; /* Unix sockets with LOOK_END_OPENED in the set */
	/*
	 * Unix socket: the process that opened the other end. Futex and locks of the kernel: the
	 * thread that holds it; lock of a file: the process. Child: the process, if the call allows
	 * only one. Pipe, TCP and FUSE: the consumer adds the process (end_abi.h). 0: not known.
	 */
	__u32 peer_pid;
	__u16 kinds[LOOK_MEMBERS_]; /* numbers of the items by kind */
	char peer_comm[COMM_BYTES]; /* of peer_pid; empty: it has ended */
	/*
	 * File: its path, as the waiting thread sees it. If the path is too long, path_cut bytes
	 * are omitted after the first path_head bytes: whole names, each with its slash.
	 *
	 * Unix socket: its address, or the peer's if it has none; an abstract address begins with
	 * '@' and ends at its first NUL. Set: the address of the first socket with LOOK_END_OPENED.
	 */
	char path[LOOK_PATH_BYTES];
	__u32 path_cut;
	__u16 path_head;
	__u16 point_bytes; /* bytes of the path that are the mount point; 0: mounted at "/" */
	__u8 path_end;	   /* enum look_path_end */
	__u8 deleted;	   /* 1: the last name of the path was removed from the file */
	/* One of LOOK_HALTED if peer_pid is halted. Only of a child, before the consumer adds it.
	 */
	__u16 peer_flags;
	__u32 net;   /* the thread's network namespace, if the peer is a loopback address */
	__u32 peers; /* processes at the other end, with peer_pid; the consumer sets it */
	__u32 pad;
	char fs[LOOK_FS_BYTES]; /* type of the file's file system */
};

/* Followed by its frames, as in the samples ring. sample.cpu and sample.seq are 0. */
struct look_record {
	struct look_head head;
	__u64 switches; /* context switches of the thread: unchanged while it has not run */
	__s32 syscall;	/* its number on this machine; LOOK_NO_SYSCALL: none, or one of 32 bits */
	__s32 nice;	/* of the thread: -20 to 19 */
	struct look_on on; /* by the rows of shared/abi/wait_on.def */
	struct sample sample;
};

#endif
