/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process.h: the processes the agent knows: those that a rule matched and those that a watched tick
 * met. A process is (tgid, start time); a pid that is used again is another process. A process that
 * has gone lingers, because samples of it may still be in the rings and in the recorder. Main
 * thread only.
 */
#ifndef TROCAR_CONSUMER_PROCESS_H
#define TROCAR_CONSUMER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/symbols/mappings.h"
#include "consumer/unwinding.h"
#include "shared/idmap.h"
#include "shared/rules.h"

struct agent;
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
	struct mappings maps;	 /* as last read */
	struct mappings before;	 /* of the image before this one */
	struct unwinding_state unwind;
	uint64_t exec_ns;  /* samples older than this belong to `before` */
	uint64_t tried_ns; /* last attempt to read the mappings */
	uint64_t asked_ns; /* last time that the kernel was asked for build-ids */
	bool compiled;	   /* it was seen with code that a runtime compiled */
	bool asking;	   /* and has not answered yet */
	uint64_t gone_ns;  /* 0 while it lives */
	uint64_t scan;	   /* number of the last scan that listed it */
};

struct processes {
	struct idmap by_id;
	size_t gone;
};

void processes_init(struct processes *p, size_t max);
void processes_done(struct agent *a);

/* The process, dead or alive, or NULL. */
struct process *process_find(struct agent *a, uint32_t tgid, uint64_t start_ns);

/*
 * Finds or makes it (no rule, no mappings yet). Where the table is full those that linger are freed
 * first: pointers to processes that have gone do not outlive it. 0, -ENOMEM, -ENOSPC.
 */
int process_get(struct agent *a, uint32_t tgid, uint64_t start_ns, struct process **ret_process);

/* Marks it as gone: leaves its watch, says process.exit if it was announced, lingers. */
void process_gone(struct agent *a, struct process *p);

/* Frees those that have lingered long enough. */
void processes_sweep(struct agent *a, uint64_t now_ns);

/* A new image: what is mapped now is `before`; times in CLOCK_MONOTONIC. */
void process_exec(struct process *p, uint64_t time_ns);

/*
 * Makes sure that the mappings have been read since `not_before_ns`, and has a table made of them;
 * without one, or when it is there, the kernel side takes raw addresses from now on. Bounded to one
 * read per process and 100 ms. True when they are there.
 */
bool process_map(struct agent *a, struct process *p, uint64_t not_before_ns);

/*
 * The same at a sample of `time_ns` for which the kernel side does not know the process as mapped:
 * where it was, it has another image since. That does not wait for the 100 ms; nor does what is
 * new.
 */
bool process_map_image(struct agent *a, struct process *p, uint64_t time_ns);

/*
 * Has the kernel side resolve the frames of the next samples: they tell the build-ids of files that
 * this process may not open. At most once per process and 100 ms.
 */
void process_ask_ids(struct agent *a, struct process *p);

/*
 * A sample with build-ids came: true when it is the answer to process_ask_ids, by a process whose
 * mappings are known; then raw addresses are taken again.
 */
bool process_asked_ids(struct agent *a, struct process *p, uint64_t time_ns);

/*
 * The mappings of image `image` (struct sample), which the process was at `time_ns`; empty when
 * they were not read, or are those of two images ago.
 */
const struct mappings *process_maps_at(const struct process *p, uint64_t time_ns, uint32_t image);

/* Has the kernel side take raw addresses of its stacks from now on. */
void process_mapped(struct agent *a, const struct process *p);

/* Tells the kernel side the number of the process's table, p->unwind.table. */
int process_set_unwind(struct agent *a, const struct process *p);

/*
 * Writes the process's target entry: TARGET_MATCHED when it has a rule or was requested, and
 * TARGET_TOLD with it.
 */
int process_target(struct agent *a, const struct process *p);

#endif
