/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * look_memory.h: the state of one reader of `looks`, and its reads of the user memory of other
 * processes. The memory is read through the process's page tables (page_walk.h), so a thread
 * snapshot cannot fault and waits for no other thread: pages that are not resident are not read. A
 * word that was read is used only to find further words and is compared with the executable ranges
 * of its process. It leaves the kernel only as an address within these ranges.
 */
#ifndef TROCAR_BPF_WAITS_LOOK_MEMORY_H
#define TROCAR_BPF_WAITS_LOOK_MEMORY_H

#define UNWIND_OTHER_TASK

#include <bpf/bpf_core_read.h>

#include "bpf/kernel/kernel.h"
#include "bpf/mappings/page_walk.h"
#include "bpf/maps/maps.h"
#include "bpf/unwind/unwind_memory.h"

/* Reads memory of the sampled task, at most LOOK_FETCH_BYTES. Returns 0 or -1. */
static __always_inline long unwind_read(void *to, __u32 bytes, __u64 address);

#include "bpf/runtimes/runtime_walk.h"
#include "bpf/unwind/unwind_walk.h"

#define LOOK_FETCH_BYTES   (UNWIND_STACK_WORDS * UNWIND_WORD)
#define LOOK_STACK_BYTES   (STACK_FRAMES * sizeof(__u64))
#define LOOK_RUNTIME_BYTES (sizeof(struct sample_runtime) + RUNTIME_FRAMES_MAX * sizeof(__u64))
#define PAGE_USER	   (1ull << 2)
#define PAGE_BYTES	   (1u << PAGE_BITS)

/* The sampled thread. */
struct look {
	__u64 switches;	  /* its context switches when the snapshot began */
	__u64 generation; /* of the table of its process; 0: none */
	__u64 cgroup_id;
	__u32 index;  /* slot of the nearest watch */
	__u32 unwind; /* target.unwind */
	__u32 flags;  /* enum look_flag */
	__u32 known;  /* 1: its process has an entry in `targets` */
	struct process_key key;
};

/* Peers that have not answered connections of an epoll (look_epoll.h). */
struct look_peer {
	__u64 address[2];
	__u32 connections, longest_ticks;
	__u16 port, family;
	__u32 pad;
};

#define LOOK_PEERS	 4
#define LOOK_EPOLL_DEPTH 64 /* items kept for later: twice the height of the largest tree */

/* The walk over the set of an epoll, poll or select. For select `pending` has the bits. */
struct look_epoll {
	__u64 file;	 /* of the epoll */
	__u64 ep;	 /* the epoll that the items must name */
	__u64 walked;	 /* the epoll walked last in this pass; 0: none */
	__u64 waiter;	 /* the next of its waiters */
	__u64 at;	 /* the next subtree; 0: the last of `pending` */
	__u64 last_file; /* of the item examined last; 0: none */
	__u64 reading;	 /* session_id of the pass that `room` is for */
	__u32 room;	 /* items that the pass may still walk */
	__u32 now;	 /* jiffies */
	__u32 depth;	 /* number of entries in `pending` */
	__u32 waits;	 /* 1: the thread is one of its waiters */
	__s32 last_fd;	 /* of the item examined last */
	__u32 pad;
	struct look_on found;  /* the result for `walked` */
	struct look_peer peer; /* of the current connection */
	struct look_peer peers[LOOK_PEERS];
	struct look_peer udp; /* peer of the set's last UDP socket; port 0: not connected */
	__u64 pending[LOOK_EPOLL_DEPTH];
};

#define LOOK_PATH_ROOM 512 /* for the begin of a name; a power of 2 */

/* The walk from a file to the root directory of its thread (look_path.h). */
struct look_path {
	__u64 dentry, mount; /* current position of the walk */
	__u64 root_dentry, root_mount;
	__u64 parts[LOOK_PATH_PARTS]; /* last name of the path first */
	__u32 count;		      /* number of `parts` */
	__u32 inner;		      /* number of them within the file system of the file */
	__u32 crossed;		      /* 1: the walk has left that file system */
	__u32 left;		      /* bytes of the names that are not written yet */
	__u32 sum, odd;		      /* of the d_seq counters of the names */
	__u32 at;		      /* length of `text` so far */
	__u32 cut, head, point;	      /* as in struct look_on */
	__u32 end;		      /* enum look_path_end */
	__u32 pad;
	__u8 bytes[LOOK_PATH_PARTS]; /* length of each name */
	char text[LOOK_PATH_ROOM + 1 + 255];
};

/*
 * State of one reader. Values that decide branches are here and not on the stack, because the
 * verifier would check all later code for each value. The record and its frames are written as one.
 */
struct looker {
	struct look look;
	struct unwind_walk walk;
	struct look_epoll epoll;
	struct look_path path;
	__u64 pgd;		/* page tables of the sampled task */
	__u64 task;		/* the sampled task, for functions that take no pointer */
	__u64 user_stack;	/* its stack pointer in user mode */
	__u64 stack, stack_end; /* its kernel stack, from its stack pointer on (look_timer.h) */
	__u64 fetched[UNWIND_STACK_WORDS];
	struct end_key end;  /* the key that look_seek.h adds to `ends` */
	__u32 at;	     /* offset of the next user frame in `frames` */
	__u32 is_short;	     /* 1: no memory for `end`, or names are missing: report again */
	__u32 runtime_bytes; /* in `frames`, after the user frames */
	__u32 pad;
	struct runtime_walk runtime;
	__u8 text[RUNTIME_TABLE_BYTES + LOOK_FETCH_BYTES]; /* read by look_read_text */
	struct look_record record;
	/* Kernel frames, user frames, and frames of a runtime. */
	__u8 frames[2 * LOOK_STACK_BYTES + LOOK_RUNTIME_BYTES];
};

/*
 * One element per reading thread, as `readers` of iter.bpf.c: iterators are preemptible, so a
 * per-CPU element would mix the stacks of two processes.
 */
TASK_MAP(lookers, struct looker);

/* Returns the state of the reading thread; NULL before looker_make. */
static __always_inline struct looker *looker_get(void)
{
	return bpf_task_storage_get(&lookers, bpf_get_current_task_btf(), 0, 0);
}

/*
 * As looker_get, but creates the state if it is missing. NULL if the kernel has no memory for it.
 */
static __always_inline struct looker *looker_make(void)
{
	return map_of_thread(&lookers);
}

/*
 * Reads `bytes` bytes of user memory at `address`, within one page, into looker.fetched. Returns 0,
 * or -1 if the page is not resident, does not belong to the user, or was moved during the read. A
 * global function: the verifier checks the walk through the page tables once.
 */
__noinline int look_fetch(__u64 address, __u32 bytes)
{
	const struct page_layout *l = map_single(&page_layout);
	struct looker *looker = looker_get();
	__u64 from, entry = 0, again = 0, at = 0, n = bytes;

	/* Keeps the bound in a form that the verifier follows. */
	asm volatile("" : "+r"(n));
	if (n > LOOK_FETCH_BYTES)
		return -1;
	if (!l || !l->base || !looker || (address & (PAGE_BYTES - 1)) + bytes > PAGE_BYTES)
		return -1;
	/* The upper half of the page tables maps the kernel. */
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
