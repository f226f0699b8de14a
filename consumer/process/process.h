/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process.h: the table of the processes that the agent knows: those that a rule matched and those
 * that a watched tick met. A process is (tgid, start time); a pid that is used again is another
 * process. A process that has gone lingers, because samples of it may still be in the rings and in
 * the recorder. Main thread only.
 */
#ifndef TROCAR_CONSUMER_PROCESS_PROCESS_H
#define TROCAR_CONSUMER_PROCESS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/process/unwind_state.h"
#include "consumer/symbols/mappings.h"
#include "shared/rules/rules.h"
#include "shared/tools/idmap.h"

struct jit_files;
struct watch;

#define PROCESS_LINGER_MS 40000 /* longer than the longest pre_ms and a drain */
#define PROCESS_GONE_MAX  8192	/* lingering ones; beyond, the oldest go early */

struct process {
	uint64_t id; /* key in the table */
	uint64_t start_ns;
	uint32_t tgid, ppid;
	uint32_t uid; /* who runs it; UID_UNKNOWN where only a scan showed it */
	char comm[COMM_BYTES];
	uint64_t cgroup_id;	 /* its own; of one that only a tick showed the watched one above */
	uint64_t seen_ns;	 /* when it became known */
	const struct rule *rule; /* of the set in force; NULL: a neighbour in a watched cgroup */
	uint32_t generation;	 /* of the set that it was last matched against */
	struct watch *watch;	 /* the watch it keeps alive through its rule, or NULL */
	bool requested;		 /* a capture by pid asked for it */
	bool announced;		 /* process.match was written: process.exit will be */
	bool left_out;		 /* it was to be, and its rule had no line left */
	bool compiled;		 /* it was seen with code that a runtime compiled */
	uint64_t gone_ns;	 /* 0 while it lives */
	uint64_t scan;		 /* number of the last scan that listed it */
	/* ---- process_mappings.c */
	struct mappings maps;	    /* as last read */
	struct mappings before;	    /* of the image before this one */
	uint64_t exec_ns;	    /* samples older than this belong to `before` */
	uint64_t tried_ns;	    /* last attempt to read the mappings */
	uint64_t build_ids_ns;	    /* last time that the kernel was asked for build-ids */
	bool build_ids_pending;	    /* and has not answered yet */
	struct process *next_read;  /* in the queue of process_queue_read */
	bool queued;		    /* stands there */
	struct unwind_state unwind; /* process_unwind.c */
};

struct processes {
	struct idmap by_id;
	size_t gone;
	struct jit_files *jit_files;		/* borrowed */
	struct process *first_read, *last_read; /* see process_queue_read */
};

/* At most `max` processes. `jit_files` is borrowed: who had compiled code is left there. */
void processes_init(struct processes *all, size_t max, struct jit_files *jit_files);
void processes_done(struct processes *all);

/* The process, dead or alive, or NULL. */
struct process *process_find(struct processes *all, uint32_t tgid, uint64_t start_ns);

/*
 * Finds or makes it (no rule, no mappings yet). Where the table is full those that linger are freed
 * first: pointers to processes that have gone do not outlive it. 0, -ENOMEM, -ENOSPC.
 */
int process_get(struct processes *all, uint32_t tgid, uint64_t start_ns,
		struct process **ret_process);

/*
 * Marks it as gone: it lingers. Before it can be freed, whoever refers to it has to let go of it
 * (process_unwind_leave, watch_leave).
 */
void process_gone(struct processes *all, struct process *p);

/* Frees those that have lingered long enough. */
void processes_sweep(struct processes *all, uint64_t now_ns);

/* Its mappings were read: queues it, once, for process_unwind_step, which makes its table of them.
 */
void process_queue_read(struct processes *all, struct process *p);

/* Takes the one that was queued first; NULL: none is. */
struct process *process_take_read(struct processes *all);

static inline struct process_key process_key(const struct process *p)
{
	return (struct process_key){ .tgid = p->tgid, .start_ns = p->start_ns };
}

#endif
