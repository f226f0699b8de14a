/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * look_memory.h: what one reader of `looks` works on, and the read of another process's user memory
 * for it. The memory is read through its page tables (page_walk.h), so a look cannot fault and
 * waits for no other thread: what is not resident is not read. A word that was read only chooses
 * further words and is compared with the executable ranges of its process; it leaves the kernel
 * side only as an address within them.
 */
#ifndef TROCAR_BPF_WAITS_LOOK_MEMORY_H
#define TROCAR_BPF_WAITS_LOOK_MEMORY_H

#define UNWIND_OTHER_TASK

#include <bpf/bpf_core_read.h>

#include "bpf/kernel/kernel.h"
#include "bpf/mappings/page_walk.h"
#include "bpf/maps/maps.h"
#include "bpf/unwind/unwind_memory.h"

/* Reads memory of the task that is looked at, at most LOOK_FETCH_BYTES. Returns 0 or -1. */
static __always_inline long unwind_read(void *to, __u32 bytes, __u64 address);

#include "bpf/unwind/unwind_walk.h"

#define LOOK_FETCH_BYTES (UNWIND_STACK_WORDS * UNWIND_WORD)
#define LOOK_STACK_BYTES (STACK_FRAMES * sizeof(__u64))
#define PAGE_USER	 (1ull << 2)
#define PAGE_BYTES	 (1u << PAGE_BITS)

/* The thread that is looked at. */
struct look {
	__u64 switches;	  /* that it had made when the look began */
	__u64 generation; /* of the table of its process; 0: none */
	__u64 cgroup_id;
	__u32 index;  /* slot of the nearest watch */
	__u32 unwind; /* target.unwind */
	__u32 flags;  /* enum look_flag */
	__u32 known;  /* 1: its process has an entry in `targets` */
	struct process_key key;
};

/* Peers that owe answers to connections of an epoll (look_epoll.h). */
struct look_peer {
	__u64 address[2];
	__u32 connections, longest_ticks;
	__u16 port, family;
	__u32 pad;
};

#define LOOK_PEERS	 4
#define LOOK_EPOLL_DEPTH 64 /* items kept for later: twice the height of the largest tree */

/* The walk over the set of an epoll, poll or select; of select `pending` has the bits. */
struct look_epoll {
	__u64 file;	 /* the epoll's */
	__u64 ep;	 /* that the items name */
	__u64 walked;	 /* the epoll that was walked last in this reading; 0: none */
	__u64 waiter;	 /* the next of those that wait in it */
	__u64 at;	 /* the subtree that comes next; 0: the last of `pending` */
	__u64 last_file; /* of the item that was judged last; 0: none was */
	__u64 reading;	 /* for which `room` holds */
	__u32 room;	 /* items that the reading may still walk */
	__u32 now;	 /* jiffies */
	__u32 depth;	 /* entries of `pending` */
	__u32 waits;	 /* 1: the thread is one that waits in it */
	__s32 last_fd;	 /* of the item that was judged last */
	__u32 pad;
	struct look_on told;   /* of `walked` */
	struct look_peer peer; /* of the connection that is judged */
	struct look_peer peers[LOOK_PEERS];
	struct look_peer udp; /* of the last socket of UDP in the set; port 0: none is connected */
	__u64 pending[LOOK_EPOLL_DEPTH];
};

#define LOOK_PATH_ROOM 512 /* for the begin of a name; a power of 2 */

/* The walk from a file to the root of its thread (look_path.h). */
struct look_path {
	__u64 dentry, mount; /* where the walk is */
	__u64 root_dentry, root_mount;
	__u64 parts[LOOK_PATH_PARTS]; /* the last name of the path first */
	__u32 count;		      /* of `parts` */
	__u32 inner;		      /* of them within the file system of the file */
	__u32 crossed;		      /* 1: the walk has left that */
	__u32 left;		      /* bytes of the names that are still to be written */
	__u32 sum, odd;		      /* of the counters of the names */
	__u32 at;		      /* in `text` */
	__u32 cut, head, point;	      /* as in struct look_on */
	__u32 end;		      /* enum look_path_end */
	__u32 pad;
	__u8 bytes[LOOK_PATH_PARTS]; /* of each name */
	char text[LOOK_PATH_ROOM + 1 + 255];
};

/*
 * State of one reading. What branches decide is kept here and not on the stack, where the verifier
 * would check all code behind each choice. The record and its frames are written as one.
 */
struct looker {
	struct look look;
	struct unwind_walk walk;
	struct look_epoll epoll;
	struct look_path path;
	__u64 pgd;		/* page tables of the task that is looked at */
	__u64 task;		/* its address, for functions that take no pointer */
	__u64 stack, stack_end; /* its kernel stack, from its stack pointer on (look_timer.h) */
	__u64 fetched[UNWIND_STACK_WORDS];
	__u32 at; /* offset of the next user frame in `frames` */
	__u32 pad;
	struct look_record record;
	__u8 frames[2 * LOOK_STACK_BYTES]; /* kernel, then user */
};

/*
 * By reading thread, as `readers` of iter.bpf.c: iterators run preemptible, so a per-CPU element
 * would mix the stacks of two processes.
 */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct looker);
} lookers SEC(".maps");

/* Returns the reader's state; NULL before looker_make. */
static __always_inline struct looker *looker_get(void)
{
	return bpf_task_storage_get(&lookers, bpf_get_current_task_btf(), 0, 0);
}

/* The same, made if need be; NULL without memory. */
static __always_inline struct looker *looker_make(void)
{
	return bpf_task_storage_get(&lookers, bpf_get_current_task_btf(), 0,
				    BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/*
 * Reads `bytes` bytes of user memory at `address`, within one page, into looker.fetched. Returns 0;
 * -1 when they are not resident, not the user's, or changed their place meanwhile. A global
 * function: the verifier checks the walk through the page tables once.
 */
__noinline int look_fetch(__u64 address, __u32 bytes)
{
	__u32 zero = 0;
	const struct page_layout *l = bpf_map_lookup_elem(&page_layout, &zero);
	struct looker *looker = looker_get();
	__u64 from, entry = 0, again = 0, at = 0, n = bytes;

	/* Keeps the bound in a form that the verifier sees. */
	asm volatile("" : "+r"(n));
	if (n > LOOK_FETCH_BYTES)
		return -1;
	if (!l || !l->base || !looker || (address & (PAGE_BYTES - 1)) + bytes > PAGE_BYTES)
		return -1;
	/* The same tables map the kernel in the upper half. */
	if (address >> (l->top + PAGE_TABLE_BITS - 1 & 63))
		return -1;
	from = page_walk_find(l, looker->pgd, address, &entry, &at);
	if (!from || !(entry & PAGE_USER) ||
	    bpf_probe_read_kernel(looker->fetched, n, (const void *)from) ||
	    bpf_probe_read_kernel(&again, sizeof(again), (const void *)at) ||
	    (entry ^ again) & (PAGE_FRAME | PAGE_PRESENT))
		return -1;
	return 0;
}

static __always_inline long unwind_read(void *to, __u32 bytes, __u64 address)
{
	struct looker *looker;
	__u64 n = bytes;

	if (look_fetch(address, bytes))
		return -1;
	looker = looker_get();
	asm volatile("" : "+r"(n));
	if (!looker || n > LOOK_FETCH_BYTES)
		return -1;
	return bpf_probe_read_kernel(to, n, looker->fetched);
}

#endif
