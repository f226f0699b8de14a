/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * abi.h: every struct that the BPF programs and user space share.
 *
 * bpf/ may include from shared/ only this file, the files next to it, and the .def tables that they
 * include. All structs have a fixed size, natural alignment and no implicit padding. A change of
 * any struct raises ABI_VERSION, the number that messages name. The map `abi` also holds a hash of
 * these files (shared/abi/hash), so that a consumer of another build refuses to run. Times are
 * CLOCK_MONOTONIC nanoseconds (bpf_ktime_get_ns); only `start_ns` is a time of the boot-time clock
 * (task_struct.start_boottime).
 */
#ifndef TROCAR_SHARED_ABI_ABI_H
#define TROCAR_SHARED_ABI_ABI_H

#include <linux/types.h>

#include "shared/abi/table_abi.h"
#include "shared/abi/unwind_abi.h"

#define ABI_MAGIC   0x7261636f72743a31ULL
#define ABI_VERSION 28u
#define COMM_BYTES  16 /* TASK_COMM_LEN: 15 bytes and the NUL */
#define CGROUP_PATH_BYTES \
	256 /* a cgroup path in an event, NUL included; longer ones are cut and marked */
#define CGROUP_PREFIX_BYTES 256	 /* LPM_DATA_SIZE_MAX of kernel/bpf/lpm_trie.c */
#define SCOPE_PREFIXES	    32	 /* the most prefixes of the loader's --scope */
#define MAPPING_PATH_BYTES  1024 /* a mapped file's path, NUL included */
#define STACK_FRAMES	    127	 /* PERF_MAX_STACK_DEPTH */
#define BUILD_ID_BYTES	    20	 /* BPF_BUILD_ID_SIZE */
#define RECORDER_DIVISOR    5	 /* the recorder's rate is a fifth of the capture's */
#define DIVISOR_MAX	    1024 /* the largest control.divisor, above the highest rate */
#define WATCH_CGROUPS	    2	 /* cgroups in `watches` per slot: half of them below watches */
/*
 * Entries of `watches` per slot, so that there is always one for a watched cgroup: one for the
 * cgroup itself; one for a cgroup below watches; one of a removed watch, until the next walk; one
 * that a walk adds before it reaches the entries to remove (bpf/watch/watch_tree.h).
 */
#define WATCH_ENTRIES  4
#define WATCHES_NESTED 4 /* nested watches that share a sample */
#define NO_SLOT	       0xffffffffu

#define ASKED_MAX	     1024  /* processes with requested mappings at a time */
#define ASKED_TRIES	     3	   /* tries per process in a walk, while its mappings change */
#define ACCOUNTS_DEFAULT     16384 /* threads with a time account at the same time */
#define QUEUE_NEIGHBOURS_MAX 4096  /* cgroups that had a CPU for which others waited */
#define ACCOUNT_CALLS_MAX    4096 /* pairs of a watch and a system call in which its threads wait */
#define NEIGHBOUR_NAME_BYTES 64	  /* last component of a cgroup's path, NUL included; longer: cut */

/*
 * Waits and requests by length, in steps of half an octave: element 0 counts lengths up to
 * QUEUE_FIRST_NS; element i up to QUEUE_FIRST_NS << i / 2, times 3 / 2 if i is odd; the last one
 * all longer lengths.
 */
#define QUEUE_FIRST_SHIFT 10
#define QUEUE_FIRST_NS	  (1ull << QUEUE_FIRST_SHIFT)
#define QUEUE_BUCKETS	  44

/* Why an attempted sample was not emitted: the keys of the ledger. Rows are appended. */
enum drop {
#define DROP(id, json, help) DROP_##id,
#include "shared/abi/drops.def"
#undef DROP
	DROP_COUNT_
};

/* The element of the map `abi`. The loader writes it once. */
struct abi_header {
	__u64 magic;	      /* ABI_MAGIC */
	__u32 version;	      /* ABI_VERSION */
	__u32 hash;	      /* ABI_HASH of the loader's build */
	__u32 hz;	      /* rate of the sampling events */
	__u32 slots;	      /* entries of `slots` and `counters` */
	__u32 rules;	      /* entries of each rules trie */
	__u32 targets;	      /* entries of `targets` */
	__u32 cpus_possible;  /* values per element of a per-CPU map */
	__u32 cpus_sampled;   /* CPUs with a permanent sampler; 0: the broker opens samplers */
	__u32 vma_open_coded; /* 1: `vmas` is iter/task with the open-coded vma iterator */
	__u32 unwind_rows;    /* elements of `unwind_pool`, 8 bytes each; 0: no tables */
	__u32 unwind_tables;  /* entries of `unwind_process` and `unwind_ranges` */
	__u32 page_shift;     /* log2 of the page size, for `vmas` on arm64; 0 counts as 12 */
	__u32 page_walk;      /* 1: the kernel side reads other processes' page tables
			       * (bpf/mappings/page_walk.h)
			       */
	__u32 scoped;	      /* 1: only cgroups below the prefixes in `scope` are observed */
	__u32 oom_victims;    /* 1: the kernel reports OOM victims (EVENT_OOM) */
	__u32 dirty_pauses;   /* 1: the kernel reports throttled writers (RECLAIM_THROTTLE) */
	__u64 loaded_ns;      /* when the loader finished */
	__u32 accounts;	      /* entries of `accounts` */
	__u32 sched_info;     /* 1: the kernel keeps the times that `accounts` needs */
	__u32 kernel_rows;    /* 1: the kernel side walks the kernel's stacks
				 (bpf/stack/kernel_stack.h) */
	__u32 socket_cgroup;  /* 1: a socket knows its cgroup */
};

/*
 * The one element of the mmapable map `control`: words that the consumer writes without a system
 * call. The programs trust none of them and bound every use.
 */
struct control {
	__u64 heartbeat_ns; /* last heartbeat of the consumer; if older than stale_ns the programs
			       are idle */
	__u64 stale_ns;	    /* how old heartbeat_ns may be; 0: always stale */
	__u32 armed;	    /* number of watches; 0: the sampler returns after this one load */
	__u32 active;	    /* the active pair of tries: 0 = a, 1 = b */
	__u32 generation;   /* of the active pair; every event carries it */
	__u32 scan_trie;    /* the trie that the `tasks` iterator matches against */
	__u32 vma_tgid; /* `vmas` emits only this process; 0: the processes in `asked`, or with the
			   open-coded body every allowed one */
	__u32 wake_bytes; /* samples ring: wake the consumer above this many bytes; 0: never */
	__u64 vma_from;	  /* `vmas` starts at this address (open-coded body only) */
	__u32 events_on;  /* 0: discovery programs return at once (no rules) */
	__u32 owner;	/* id of the consumer that drains; a consumer that finds another id exits */
	__u32 divisor;	/* the recorder takes one tick in `divisor`; 0 or above DIVISOR_MAX:
			   RECORDER_DIVISOR */
	__u32 sessions; /* running sessions; 0: the sampler counts no CPU time in `neighbours` */
	__u32 look_epoch;    /* `looks` repeats stacks that it reported in another epoch */
	__u32 look_mode;     /* enum look_mode */
	__u32 calls;	     /* sessions that count waits by system call in `account_calls` */
	__u32 sockets;	     /* sessions with socket snapshots; 0: `sockets` forgets its state */
	__u32 seeks;	     /* sessions that want the other ends of waits; 0: `ends` is emptied */
	__u32 ends_left_out; /* descriptors beyond the limits of the last pass of `other_ends` */
	__u64 lost_lines, lost_bytes, lost_sessions; /* not written by a consumer at its end */
	/* Elements in each table, and elements of no watch. Both sides count. */
	__s32 used[TABLES_], unwatched[TABLES_];
};

enum slot_state {
	SLOT_IDLE = 0,
	SLOT_RECORDER = 1,
	SLOT_CAPTURE = 2,
};

enum slot_flag {
	SLOT_BY_PROCESS =
		1u << 0, /* sample only processes that match (bpf/discovery/target_match.h) */
	SLOT_NO_KTHREADS = 1u << 1, /* skip kernel threads: they are in the root cgroup */
};

/*
 * One element of the mmapable map `slots`, one per watch. The consumer writes it, except `outer`,
 * `left_out` and `unsought`, which the kernel side writes, and `used`, in which both sides count.
 */
struct slot {
	__u32 state;	     /* enum slot_state */
	__u32 flags;	     /* enum slot_flag */
	__u32 epoch;	     /* grows when the slot is given to another watch; in every sample */
	__u32 outer;	     /* slot of the next watch around this one, plus 1; 0: none */
	__u64 session;	     /* id of the running session, 0: none; it outlives the consumer */
	__u32 left_out;	     /* cgroups below the watch with ticks that do not reach it */
	__u32 looked;	     /* 1: `looks` reports the watch's threads */
	__u32 payer;	     /* slot with the `used` that counts for this one: one per owner */
	__u32 unsought;	     /* grows with each wait that `ends` has no space for */
	__s32 used[TABLES_]; /* elements of the owner in each table */
};

enum watch_flag {
	WATCH_OWN = 1u << 0,   /* the cgroup itself is watched, else a cgroup above it */
	WATCH_ALONE = 1u << 1, /* its descendants are not watched (the root cgroup) */
};

/*
 * Value of `watches`; the key is a cgroup's id. The consumer writes the entries of watched cgroups,
 * the kernel side writes the entries of their descendants (bpf/watch/watch_tree.h).
 */
struct watch_entry {
	__u32 slot;  /* of the nearest watch */
	__u32 flags; /* enum watch_flag */
};

/* The kernel side counts the first SLOT_LOST_REASONS reasons of enum drop in a slot. */
#define SLOT_LOST_REASONS 8

/* One element, per CPU, of `counters`. Only the sampler writes it, and only increments. */
struct slot_counters {
	__u64 attempted;	       /* ticks chosen for this slot */
	__u64 emitted;		       /* records in the samples ring */
	__u64 lost[SLOT_LOST_REASONS]; /* by enum drop */
};

/* One element, per CPU, of `switches`, counted while the signal `switch` is attached. */
struct slot_switches {
	__u64 voluntary;   /* the task went to sleep */
	__u64 involuntary; /* the task was still runnable: preempted, or it yielded */
};

/*
 * The one element of the mmapable map `broker`. Only the broker writes it. Indices:
 * shared/broker/broker.h.
 */
struct broker_counts {
	__u64 starts; /* of broker processes */
	__u64 granted[16];
	__u64 refused[48];
};

/*
 * Key and value of `targets`: a process that a rule matched, or that a tick in a watched cgroup
 * found.
 */
struct process_key {
	__u32 tgid;
	__u32 pad;	/* 0 */
	__u64 start_ns; /* group leader's start_boottime */
};

enum target_flag {
	TARGET_MATCHED = 1u << 0,  /* a rule matched it (kernel side or consumer) */
	TARGET_MAPPED = 1u << 1,   /* the consumer knows its mappings: sample raw user addresses */
	TARGET_WOKEN = 1u << 2,	   /* the consumer was woken to read the mappings of this image */
	TARGET_REPORTED = 1u << 3, /* the consumer knows it as matched: report its exit */
};

struct target {
	__u32 flags; /* enum target_flag */
	__u32 rule;  /* value of the trie entry that matched; NO_SLOT when none */
	__u32 generation;
	__u32 unwind; /* number of the process's table plus 1; 0: it has none */
	__u32 image;  /* the image that TARGET_MAPPED refers to, as in struct sample */
};

/* Key of `rules_a` and `rules_b`. A prefix that includes the terminating NUL matches exactly. */
struct comm_key {
	__u32 prefix_bits;
	char comm[COMM_BYTES];
};

/* Key of `cgroups_a` and `cgroups_b`: a prefix of the path below the cgroup2 mount. */
struct cgroup_key {
	__u32 prefix_bits;
	char path[CGROUP_PREFIX_BYTES];
};

/* Value of all four tries. */
struct rule_value {
	__u32 rule; /* index of a rule with this key in the consumer's rule set */
	__u32 generation;
};

/* One entry of the samples ring: header, then kernel frames, then user frames. */
enum sample_flag {
	SAMPLE_BUILD_ID = 1u << 0, /* user frames are struct frame_build_id, else __u64 addresses */
	SAMPLE_CAPTURE = 1u << 1,  /* taken at the capture rate, else by the recorder */
	SAMPLE_IN_USER = 1u << 2,  /* the tick hit user mode */
	SAMPLE_KTHREAD = 1u << 3,  /* no user frames: a kernel thread, a worker of io_uring or vhost
				      in its process, or during execve or exit */
	SAMPLE_ADDRESSES = 1u << 4, /* with SAMPLE_BUILD_ID: the frames' __u64 addresses follow */
	SAMPLE_UNWOUND = 1u << 5,   /* user frames were walked by a table; see stop_reason */
	SAMPLE_LEAF_ID = 1u << 6,   /* with SAMPLE_UNWOUND: the leaf's frame_build_id follows */
	SAMPLE_LEAF_CHANGED = 1u << 7, /* with SAMPLE_UNWOUND: the leaf's file was replaced */
	SAMPLE_BY_POINTER = 1u << 8,   /* with SAMPLE_UNWOUND: the last step was by frame pointer */
	SAMPLE_MATCHED = 1u << 9, /* the process matched at the tick: see rule and generation */
	SAMPLE_WAKER = 1u << 10,  /* no tick: the thread ended a lock wait (struct sample_waker) */
	SAMPLE_MEMORY_STALL = 1u << 11, /* the tick hit a thread in a memory stall, as PSI counts it
					   (TSK_MEMSTALL) */
	SAMPLE_RUNTIME = 1u << 12, /* with SAMPLE_UNWOUND: frames of a runtime (runtime_abi.h) */
	SAMPLE_FLAGS_END_ = 1u << 13,
};

struct sample {
	__u64 time_ns;
	__u64 start_ns; /* of the process */
	__u32 slot;
	__u32 epoch; /* of the slot */
	__u32 seq;   /* number of the attempt, by slot and CPU, from 0: gaps are losses */
	__u32 cpu;
	__u32 tgid;
	__u32 tid;
	__u32 flags;	     /* enum sample_flag */
	__u16 kernel_frames; /* leaf first, 8 bytes each */
	__u16 user_frames;   /* leaf first, 8 or 32 bytes each */
	__s32 kernel_error;  /* -errno of the kernel stack fetch, 0 if fine */
	__s32 user_error;
	__u32 stop_reason;	/* enum unwind_end with SAMPLE_UNWOUND, else 0 */
	__u32 table_generation; /* with SAMPLE_UNWOUND: low half of the table's generation */
	__u32 image;		/* number of the process's image: grows with each execve(2) */
	__u32 call;	       /* system call that the tick hit, or enum account_call; no tick: 0 */
	char comm[COMM_BYTES]; /* of the thread */
	__u32 rule;	       /* with SAMPLE_MATCHED: as in struct target; NO_SLOT: no rule */
	__u32 generation;      /* of that rule */
	__u64 cgroup_id;       /* of the thread: the watched cgroup, or one below it */
};

/* Same layout as struct bpf_stack_build_id (uapi/linux/bpf.h). */
struct frame_build_id {
	__s32 status; /* 1: build_id and offset valid; 2: ip only */
	__u8 build_id[BUILD_ID_BYTES];
	__u64 offset_or_ip; /* offset in the file, or address when status is 2 */
};

enum event_kind {
	EVENT_EXEC = 1,	     /* a matched process called execve */
	EVENT_FORK = 2,	     /* a matched process forked; the child matches too */
	EVENT_RENAME = 3,    /* a process took a matching name */
	EVENT_EXIT = 4,	     /* a target process is gone */
	EVENT_MKDIR = 5,     /* a cgroup with a matching path appeared */
	EVENT_RMDIR = 6,     /* a watched cgroup is gone */
	EVENT_POPULATED = 7, /* a matching cgroup got its first process */
	EVENT_EMPTY = 8,     /* a watched cgroup lost its last process */
	EVENT_UNNAME = 9,    /* a matched process took a name that no rule matches */
	EVENT_UNMAPPED = 10, /* a stack left the mappings of the process's table */
	EVENT_OOM = 11,	     /* the OOM killer kills a process of a watch */
	EVENT_KINDS_END_,
};

enum event_flag {
	EVENT_NEW_IMAGE = 1u << 0, /* the process called execve */
};

/* One entry of the events ring. Cgroup events carry the path, process events do not. */
struct event {
	__u64 time_ns;
	__u64 start_ns;
	__u64 cgroup_id;
	__u32 kind; /* enum event_kind */
	__u32 tgid;
	__u32 ppid; /* parent's tgid */
	__u32 rule;
	__u32 generation;
	__u16 path_bytes; /* bytes of `path`, NUL included; 0 for process events */
	__u16 path_cut;	  /* 1: the path was longer than fits */
	char comm[COMM_BYTES];
	__u32 uid;   /* of the process, real; 0 for cgroup events */
	__u32 flags; /* enum event_flag */
	char path[]; /* path_bytes */
};

/* The memory limit that was reached when a process was killed. */
enum oom_limit {
	OOM_LIMIT_UNKNOWN,
	OOM_LIMIT_CGROUP, /* the limit of its memory cgroup, or of one above */
	OOM_LIMIT_NONE, /* no limit: the machine, or a set of its NUMA nodes, had no free memory */
};

/*
 * Follows a struct event of EVENT_OOM, with the victim as its process. The kernel's counters of
 * pages are inexact: each CPU may hold back up to 32 pages, or up to twice the number of CPUs.
 */
struct oom_victim {
	__u64 limit_cgroup_id; /* cgroup with the limit; 0: not a cgroup2 limit */
	__u64 limit_pages;
	__u64 anon_pages, file_pages, shmem_pages, swap_pages;
	__u32 slot;	   /* of the nearest watch */
	__u32 limit;	   /* enum oom_limit */
	__u32 limit_level; /* levels from the victim's memory cgroup up to the limit */
	__s32 score_adj;
	__u32 asker_tgid; /* the process that asked for memory */
	__u32 has_memory; /* 1: the page counts are known */
	char asker_comm[COMM_BYTES];
	char limit_name[NEIGHBOUR_NAME_BYTES]; /* last path component of that cgroup */
};

enum error_kind {
	ERROR_SAMPLES_FULL = 1, /* the samples ring was full */
	ERROR_EVENTS_FULL =
		2, /* the events ring was full: discovery may have gaps until the next scan */
	ERROR_USER_STACK = 3, /* bpf_get_stack of the user stack failed */
	ERROR_KERNEL_STACK = 4,
	ERROR_TARGETS_FULL = 5, /* `targets` is full: the process keeps stacks by build-id */
	ERROR_WATCHES_FULL = 6, /* `watches` is full, or too many watches are around a cgroup */
};

/* One entry of the errors ring; at most one per kind, CPU and second. */
struct error_record {
	__u64 time_ns;
	__u32 kind;  /* enum error_kind */
	__s32 error; /* -errno, 0 if none */
	__u32 slot;
	__u32 rule;
	__u32 tgid;
	__u32 space;	  /* requested bytes */
	__u32 suppressed; /* errors of this kind on this CPU since the last record */
	__u32 cpu;
	char comm[COMM_BYTES];
};

#define UNWIND_STOP_REASONS 16 /* at least the number of enum unwind_end */

/* Event losses outside slots: the one per-CPU element of `totals`. */
struct totals {
	__u64 events;	      /* records in the events ring */
	__u64 events_lost;    /* the ring was full */
	__u64 errors_lost;    /* records that did not fit into the errors ring */
	__u64 stale_ticks;    /* watched ticks skipped because the heartbeat was stale */
	__u64 targets_full;   /* processes that did not fit into `targets` */
	__u64 ticks_watched;  /* ticks that met a watched slot */
	__u64 events_limited; /* renames of one process or changes of one cgroup above the limit */
	__u64 events_over_quota; /* starts and renames beyond the quota of a user or cgroup */
	__u64 events_shed; /* events of less important kinds, while the ring was nearly full */
	__u64 unwind_stop_reasons[UNWIND_STOP_REASONS]; /* user stacks walked by a table, by enum
							   unwind_end */
	/* Time of ticks while control.sessions is not 0: */
	__u64 idle_ns;		    /* in which the CPU was idle */
	__u64 neighbours_full_ns;   /* of cgroups that did not fit into `neighbours` */
	__u64 neighbours_short_ns;  /* part of that: the table was not full (bpf/maps/table.h) */
	__u64 neighbours_hidden_ns; /* of cgroups outside the loader's --scope */
	__u64 watches_full;	    /* cgroups below a watch that could not be entered */
	/* Kernel stacks of samples (bpf/stack/kernel_stack.h): */
	__u64 kernel_stacks_asked;    /* requested from the kernel's helper */
	__u64 kernel_stacks_compared; /* walked, and compared with the helper's stack */
	__u64 kernel_stacks_wrong;    /* compared stacks that differed */
	__u64 runtime_names_full;     /* names that did not fit into `runtime_names` at first */
};

/*
 * A read(2) of an iterator ends only when its buffer is full: without a match, one read would walk
 * over all tasks. So `tasks` writes TASKS_AT_ONCE empty records (tgid 0) after each TASKS_PAUSE
 * tasks. A read of TASKS_AT_ONCE records ends there, and the reader skips empty records.
 */
#define TASKS_PAUSE   1024
#define TASKS_AT_ONCE 16

/* What `tasks` writes: one record per matching thread-group leader; tgid 0: an empty one. */
struct task_record {
	__u64 start_ns;
	__u64 cgroup_id;
	__u32 tgid;
	__u32 ppid;
	__u32 rule; /* of the trie entry; NO_SLOT: listed for its cgroup, or because it is known */
	__u32 generation;
	char comm[COMM_BYTES];
};

enum mapping_flag {
	MAPPING_IS_EXE = 1u << 0, /* same inode as the process's executable */
	MAPPING_VDSO = 1u << 1,
	MAPPING_ANON = 1u << 2, /* executable memory: JIT (mapped_file_is_memory) */
	MAPPING_MORE = 1u << 3, /* no mapping: read again from `end` on */
	MAPPING_PATH_CUT = 1u << 4,
};

/*
 * What `vmas` writes: one record per executable mapping, followed by path_bytes of path. The
 * members from file_offset to generation are 0 without a file. Inode numbers are reused, and a file
 * may be written in place: generation, size and times identify the version of the file at the time
 * of the read.
 */
struct mapping_record {
	__u64 start_ns; /* of the process */
	__u64 start;
	__u64 end;
	__u64 file_offset;
	__u64 inode;
	__u64 file_bytes; /* i_size */
	__u64 changed_ns; /* i_ctime: last change of content or attributes, ns since 1970 */
	__u64 written_ns; /* i_mtime: last change of content, unless a program set it */
	__u32 device;	  /* kernel's dev_t: major << 20 | minor */
	__u32 generation; /* i_generation: changes with each use of the inode number */
	__u32 tgid;
	__u32 flags;	  /* enum mapping_flag */
	__u32 path_bytes; /* NUL included, padded to 8 by the writer; 0 without a file */
	__u32 image;	  /* as in struct sample */
	char path[];
};

/*
 * Value of `asked`; the key is a process id: the consumer requests the mappings of that process
 * from address `from` on. The kernel side writes the other members: its choice of a thread
 * (bpf/mappings/memory_thread.h).
 */
struct asked_process {
	__u64 from;
	__u64 session_id;
	__u32 tid;
	__u32 failed; /* failed tries; after ASKED_TRIES the process is skipped */
};

#include "shared/abi/account_abi.h"
#include "shared/abi/block_abi.h"
#include "shared/abi/end_abi.h"
#include "shared/abi/lock_abi.h"
#include "shared/abi/long_wait_abi.h"
#include "shared/abi/look_abi.h"
#include "shared/abi/neighbour_abi.h"
#include "shared/abi/reclaim_abi.h"
#include "shared/abi/socket_abi.h"
#include "shared/abi/symbol_abi.h"

#endif
