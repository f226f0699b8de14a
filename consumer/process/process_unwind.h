/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process_unwind.h: decides which processes are unwound by rows. Once the mappings of a process
 * were read and all of its files are compiled, it makes a table and publishes it to the kernel
 * side. Until then, and without a table, the kernel side walks the stacks by frame pointers. Main
 * thread only.
 */
#ifndef TROCAR_CONSUMER_PROCESS_PROCESS_UNWIND_H
#define TROCAR_CONSUMER_PROCESS_PROCESS_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/io/loop.h"
#include "consumer/io/schedule.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/output/event_budget.h"
#include "consumer/output/event_log.h"
#include "consumer/process/mappings_reread.h"
#include "consumer/process/process.h"
#include "consumer/process/process_targets.h"
#include "consumer/process/unwind_room.h"
#include "consumer/process/unwind_tables.h"

struct jsonw;

#define PROCESS_UNWIND_STARVED_MAX 64

/* The modules that it works with; all borrowed. */
struct process_unwind_needs {
	const struct pinned_maps *pins;
	struct processes *processes;
	const struct process_targets *targets;
	struct mappings_reread *reread;
	struct symbols *symbols;
	struct shares *shares;
	struct cgroups *cgroups;
	const struct captured *captured;
	const struct event_log *log;
	struct event_budget *budget;
	struct schedule *schedule;
};

struct process_unwind {
	struct process_unwind_needs needs;
	struct unwind_files *files; /* owned; NULL: no process is unwound by rows */
	struct unwind_tables tables;
	struct unwind_room room;
	struct process *first; /* list of processes that wait for files or for a table */
	struct process_key
		starved[PROCESS_UNWIND_STARVED_MAX]; /* processes with files that did not fit */
	size_t starved_count;
	bool hungry;	 /* a process that lacks a table was sampled since the last step */
	bool unfinished; /* the last round over the waiting processes ran out of time */
	uint32_t round;	 /* each waiting process is continued once in a round */
	struct loop_source *source;
};

/* Returns whether process_unwind_step has work left over from an earlier call. */
bool process_unwind_has_rest(const struct process_unwind *u);

/*
 * Initialises without tables: no process is unwound by rows yet. The pointers in `needs` are
 * borrowed.
 */
void process_unwind_init(struct process_unwind *u, const struct process_unwind_needs *needs);

/*
 * Starts the unwinder thread (before the system-call filter) with the pinned maps. Returns 0 or
 * -errno.
 */
int process_unwind_start(struct process_unwind *u);
/* Adds its source to the loop. Returns 0 or -errno. */
int process_unwind_listen(struct process_unwind *u, struct loop *loop);
/* Frees all plans and tables. Call before processes_done. */
void process_unwind_done(struct process_unwind *u);

/*
 * Makes or renews the tables of the processes with mappings that were read since the last call
 * (process_queue_read), and makes the kernel side take raw addresses of those with a table. Ends
 * when the time slice is over; the rest stays in the queue for the next call. Call after each
 * drain, and after a process was mapped outside of a drain.
 */
void process_unwind_step(struct process_unwind *u);

/*
 * Forgets modules without a holder since before_ns (symbols_forget), unless something else refers
 * to them. Returns their number; symbols_sweep frees them.
 */
size_t process_unwind_forget(struct process_unwind *u, uint64_t before_ns);

/*
 * Continues the plans that waited for files or for a grace period, until the time slice is over;
 * the next process_unwind_step continues. The loop calls it.
 */
void process_unwind_news(struct process_unwind *u);

/*
 * Reads the mappings that mappings_reread has scheduled, then steps; the loop calls it shortly
 * after a drain. Returns whether it must be called again, because time ran out.
 */
bool process_unwind_settle(struct process_unwind *u);

/* Call when a stack of `p` has left the mappings of its table (mappings_reread_unmapped); steps. */
void process_unwind_unmapped(struct process_unwind *u, struct process *p, uint64_t time_ns);

/*
 * Call when `p` matches another rule, or none: renews its table if the rule wants another unwind
 * method.
 */
void process_unwind_matched(struct process_unwind *u, struct process *p);

/*
 * Call for each sample of `p`. For a stack with SAMPLE_UNWOUND, sets *ret_table to the table that
 * the kernel side walked it with, which belongs to its own process or an ancestor
 * (sample.table_generation), whatever is mapped there now. It is NULL for other stacks, and if the
 * table is no longer known. The table counts as used. Returns true if the kernel side did not use
 * p's table because it considers it as another image's: then the mappings must be read again as
 * soon as allowed, and a new table follows.
 */
bool process_unwind_sampled(struct process_unwind *u, struct process *p,
			    const struct sample *record, const struct walk_table **ret_table);

/* Returns the table of the record as process_unwind_sampled does, without any other effect. */
const struct walk_table *process_unwind_table(struct process_unwind *u,
					      const struct sample *record);

/*
 * Call when process.match of `p` was written: process.unwind follows once the unwind method is
 * known.
 */
void process_unwind_announced(struct process_unwind *u, struct process *p);

/* Call when `p` has ended. */
void process_unwind_leave(struct process_unwind *u, struct process *p);

/* Writes the object `unwind` of the status method. */
void process_unwind_write_status(const struct process_unwind *u, struct jsonw *w);

#endif
