/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process.h: the table of the processes that the agent knows: processes that a rule matched, and
 * processes seen in a tick of a watched cgroup. The key is (tgid, start time), so a reused pid is
 * another process. A process that has ended stays in the table for PROCESS_LINGER_MS, because
 * samples of it may still be in the rings and in the recorder. So does a living process that has
 * left: no rule matches it and its cgroup is not watched, but it may come back. Main thread only.
 */
#ifndef TROCAR_CONSUMER_PROCESS_PROCESS_H
#define TROCAR_CONSUMER_PROCESS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/mappings/mappings.h"
#include "consumer/process/unwind_state.h"
#include "shared/rules/rules.h"
#include "shared/tools/idmap.h"

struct perf_map_files;
struct watch;

#define PROCESS_LINGER_MS 40000 /* longer than the longest pre_ms and a drain */
#define PROCESS_GONE_MAX  8192	/* ended or left processes; beyond, they are freed early */

/* Its place in the list of processes with a process.match that waits for their mappings. */
struct match_wait {
	struct process *previous, *next;
	const char *found; /* a literal, for the line */
	bool queued;
};

enum mappings_wait_state {
	MAPPINGS_UNASKED,
	MAPPINGS_QUEUED, /* the next walk asks for them */
	MAPPINGS_ASKED,	 /* the running walk asks for them */
};

/* Its place in the list of processes that wait for a walk over all tasks to read their mappings. */
struct mappings_wait {
	struct process *previous, *next;
	uint64_t since_ns;  /* they must not be older */
	unsigned int walks; /* walks since the request that have not listed it */
	enum mappings_wait_state state;
};

struct process {
	uint64_t id; /* key in the table */
	uint64_t start_ns;
	uint32_t tgid, ppid;
	uint32_t uid; /* the user that runs it; UID_UNKNOWN if only a scan found it */
	char comm[COMM_BYTES];
	uint64_t cgroup_id;	 /* its own; if only a tick showed it, the watched one above */
	uint64_t seen_ns;	 /* when the agent first saw it */
	const struct rule *rule; /* of the active set; NULL: only its cgroup is watched */
	uint32_t generation;	 /* the generation of the rules that it was last matched against */
	struct watch *watch;	 /* the watch that its rule keeps running, or NULL */
	bool requested;		 /* a capture by pid asked for it */
	bool announced;	  /* process.match was written, so process.exit or .left must follow */
	bool left_out;	  /* process.match was omitted: its rule had no line left */
	bool compiled;	  /* it was seen with code compiled by a runtime */
	uint64_t gone_ns; /* when it ended; 0 while it lives */
	uint64_t left_ns; /* when it left; 0: it has not left, or has ended since */
	struct process *previous_gone, *next_gone;
	uint64_t scan; /* number of the last scan that listed it */
	/* ---- written by process_mappings.c */
	struct mappings maps;	    /* as last read */
	struct mappings before;	    /* of the previous image */
	uint64_t exec_ns;	    /* samples older than this belong to `before` */
	uint64_t tried_ns;	    /* last attempt to read the mappings */
	uint64_t build_ids_ns;	    /* last time the kernel side was asked for build-ids */
	bool build_ids_pending;	    /* the kernel side has not answered yet */
	struct process *next_read;  /* next in the queue of process_queue_read */
	bool queued;		    /* it is in that queue */
	struct match_wait match;    /* written by match_queue.c */
	struct mappings_wait wait;  /* written by mappings_queue.c */
	struct unwind_state unwind; /* written by process_unwind.c */
};

struct processes {
	struct idmap by_id;
	size_t gone;				/* number of processes that have ended or left */
	struct process *first_gone, *last_gone; /* ended or left processes, in this order */
	struct perf_map_files *perf_map_files;	/* borrowed */
	struct process *first_read, *last_read; /* the queue of process_queue_read */
};

/*
 * Initialises a table of at most `max` processes. `perf_map_files` is borrowed: process_gone
 * reports processes with compiled code there.
 */
void processes_init(struct processes *all, size_t max, struct perf_map_files *perf_map_files);
void processes_done(struct processes *all);

/* Returns the process, even if it has ended or left, or NULL. */
struct process *process_find(struct processes *all, uint32_t tgid, uint64_t start_ns);

/*
 * Finds the process or creates it (without rule and mappings). If the table is full, it first frees
 * the process that ended or left first, so do not keep pointers to such processes across this call.
 * Returns 0, -ENOMEM, -ENOSPC, or -EEXIST if the hash of another process is the same.
 */
int process_get(struct processes *all, uint32_t tgid, uint64_t start_ns,
		struct process **ret_process);

/*
 * Marks the process as ended; it stays in the table for PROCESS_LINGER_MS. Before that, every
 * module that refers to it must drop its reference (process_unwind_leave, watch_leave).
 */
void process_gone(struct processes *all, struct process *p);

/*
 * Marks a living process as one that has left, with the same duties as process_gone. process_back
 * undoes this. Neither changes a process that has ended.
 */
void process_left(struct processes *all, struct process *p);
void process_back(struct processes *all, struct process *p);

/*
 * Frees the processes that ended or left more than PROCESS_LINGER_MS ago, or an eighth of that
 * while there are more than PROCESS_GONE_MAX. Costs nothing for other processes: call it in every
 * drain.
 */
void processes_sweep(struct processes *all, uint64_t now_ns);

/* Queues a process with new mappings, once, for process_unwind_step, which makes its table. */
void process_queue_read(struct processes *all, struct process *p);

/* Removes the first process from the queue and returns it; NULL if the queue is empty. */
struct process *process_take_read(struct processes *all);

/*
 * Returns whether the process lives and is matched, watched or sampled. For any other process no
 * mappings are read and no table is made, and processes_sweep may free it.
 */
static inline bool process_is_needed(const struct process *p)
{
	return !p->gone_ns && !p->left_ns;
}

static inline struct process_key process_key(const struct process *p)
{
	return (struct process_key){ .tgid = p->tgid, .start_ns = p->start_ns };
}

#endif
