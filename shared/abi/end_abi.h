/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* end_abi.h: the part of the ABI (abi.h) that is about the processes at the other end of a wait. */
#ifndef TROCAR_SHARED_ABI_END_ABI_H
#define TROCAR_SHARED_ABI_END_ABI_H

#include "shared/abi/abi.h"

#define ENDS_MAX      1024 /* keys in `ends` */
#define END_PROCESSES 4	   /* processes that are kept for one key */

/* Limits of one pass of `other_ends` over the descriptors of all processes. */
#define END_FILES_MAX  65536   /* descriptors of one process */
#define END_PASS_FILES 1048576 /* descriptors of all processes */

enum end_kind {
	END_READER, /* of a pipe */
	END_WRITER, /* of a pipe */
	END_TCP,    /* has a connection or a listener with this local address and port */
	/* Listens on the port of all addresses of the namespace: the key has no address. */
	END_TCP_ANY,
	END_FUSE, /* serves the file system */
	END_LOCK, /* has the open file that holds the lock */
	END_KINDS_
};

/*
 * Key of `ends`: an object that a thread waits on. Members that the kind does not have are 0.
 * `looks` makes the elements; the consumer only reads them.
 */
struct end_key {
	__u64 inode;	  /* of the pipe; of a lock, the hidden address of its open file */
	__u32 device;	  /* of the pipe's or FUSE's file system: kernel's dev_t */
	__u32 net;	  /* number of the network namespace, for loopback addresses and ANY */
	__u8 address[16]; /* 4 bytes of AF_INET, 16 of AF_INET6 */
	__u16 port;	  /* host byte order */
	__u8 family;
	__u8 kind; /* enum end_kind */
	__u32 pad;
};

struct end_process {
	__u32 tgid;
	__u16 flags;   /* one of LOOK_HALTED: of its main thread; 0: not halted */
	__u16 listens; /* 1: it only listens; 0: it has a connection, or no socket */
	char comm[COMM_BYTES];
};

/* Value of `ends`. `other_ends` clears `count` at the begin of a pass. */
struct end_value {
	__u32 slot;  /* of the watch that pays for the element */
	__u32 count; /* processes found; the first END_PROCESSES are kept */
	struct end_process processes[END_PROCESSES];
};

#endif
