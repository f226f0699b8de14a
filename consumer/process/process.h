/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process.h: the table of the processes that the agent knows: those that a rule matched, and those
 * that a tick of a watched cgroup showed. A process is (tgid, start time), so a pid that is used
 * again is another process. A process that has ended stays in the table for PROCESS_LINGER_MS,
 * because samples of it may still be in the rings and in the recorder. So does one that lives and
 * has left: no rule matches it and its cgroup is not watched; it may come back. Main thread only.
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
#define PROCESS_GONE_MAX  8192	/* of those that have ended or left; beyond, they are freed early */

/* Its place among those with a process.match that waits for their mappings. */
struct match_wait {
	struct process *previous, *next;
	const char *found; /* a literal, for the line */
	bool queued;
};

enum mappings_wait_state {
	MAPPINGS_UNASKED,
	MAPPINGS_QUEUED, /* the next walk asks for them */
	MAPPINGS_ASKED,	 /* the present one does */
};

/* Its place among those with mappings that a walk over all tasks reads. */
struct mappings_wait {
	struct process *previous, *next;
	uint64_t since_ns;  /* they must not be older */
	unsigned int walks; /* that have not listed it since it was asked for */
	enum mappings_wait_state state;
};

struct process {
	uint64_t id; /* key in the table */
	uint64_t start_ns;
	uint32_t tgid, ppid;
	uint32_t uid; /* the user that runs it; UID_UNKNOWN when only a scan showed it */
	char comm[COMM_BYTES];
	uint64_t cgroup_id;	 /* its own; when only a tick showed it, the watched one above */
	uint64_t seen_ns;	 /* when the agent first saw it */
	const struct rule *rule; /* of the set in force; NULL: only its cgroup is watched */
	uint32_t generation;	 /* the generation that it was last matched against */
	struct watch *watch;	 /* the watch that its rule keeps running, or NULL */
	bool requested;		 /* a capture by pid asked for it */
	bool announced;		 /* process.match was written: process.exit or .left must be */
	bool left_out;		 /* process.match was left out: its rule had no line left */
	bool compiled;		 /* it was seen with code that a runtime compiled */
	uint64_t gone_ns;	 /* when it ended; 0 while it lives */
	uint64_t left_ns;	 /* when it left; 0: it has not, or has ended since */
	struct process *previous_gone, *next_gone;
	uint64_t scan; /* number of the last scan that listed it */
	/* ---- written by process_mappings.c */
	struct mappings maps;	    /* as last read */
	struct mappings before;	    /* of the image before this one */
	uint64_t exec_ns;	    /* samples older than this are of `before` */
	uint64_t tried_ns;	    /* last attempt to read the mappings */
	uint64_t build_ids_ns;	    /* last time the kernel side was asked for build-ids */
	bool build_ids_pending;	    /* it has not answered yet */
	struct process *next_read;  /* next in the queue of process_queue_read */
	bool queued;		    /* it is in that queue */
	struct match_wait match;    /* written by match_queue.c */
	struct mappings_wait wait;  /* written by mappings_queue.c */
	struct unwind_state unwind; /* written by process_unwind.c */
};

struct processes {
	struct idmap by_id;
	size_t gone;				/* how many of them have ended or left */
	struct process *first_gone, *last_gone; /* these, in the order of that */
	struct perf_map_files *perf_map_files;	/* borrowed */
	struct process *first_read, *last_read; /* the queue of process_queue_read */
};

/*
 * Initialises a table of at most `max` processes. `perf_map_files` is borrowed: process_gone
 * reports processes with compiled code there.
 */
void processes_init(struct processes *all, size_t max, struct perf_map_files *perf_map_files);
void processes_done(struct processes *all);

/* Returns the process, also one that has ended or left, or NULL. */
struct process *process_find(struct processes *all, uint32_t tgid, uint64_t start_ns);

/*
 * Finds the process or makes it (without rule and mappings). In a full table first frees the
 * process that ended or left first, so do not keep pointers to those across this call. 0, -ENOMEM,
 * -ENOSPC, or -EEXIST when the hash of another process is the same.
 */
int process_get(struct processes *all, uint32_t tgid, uint64_t start_ns,
		struct process **ret_process);

/*
 * Marks the process as ended; it stays in the table for a while. Before that, every module that
 * refers to it must drop its reference (process_unwind_leave, watch_leave).
 */
void process_gone(struct processes *all, struct process *p);

/*
 * Marks a living process as one that has left, with the same duties as above. process_back takes
 * that back; neither does anything to a process that has ended.
 */
void process_left(struct processes *all, struct process *p);
void process_back(struct processes *all, struct process *p);

/*
 * Frees the processes that ended or left more than PROCESS_LINGER_MS ago; after an eighth of that
 * when more than PROCESS_GONE_MAX have. Costs nothing for the others: call it in every drain.
 */
void processes_sweep(struct processes *all, uint64_t now_ns);

/* Queues a process with new mappings, once, for process_unwind_step, which makes its table. */
void process_queue_read(struct processes *all, struct process *p);

/* Takes the first process off the queue; NULL: the queue is empty. */
struct process *process_take_read(struct processes *all);

/*
 * Whether the process lives and is matched, watched or sampled. Of any other no mappings are read
 * and no table is made: processes_sweep may free it.
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
