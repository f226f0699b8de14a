/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process_unwind.h: which process is unwound by rows. For each process whose mappings were read a
 * table is made as soon as all of its files are compiled, and published to the kernel side; until
 * then, and without one, its stacks are taken by frame pointers. Main thread only.
 */
#ifndef TROCAR_CONSUMER_PROCESS_PROCESS_UNWIND_H
#define TROCAR_CONSUMER_PROCESS_PROCESS_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/io/loop.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/output/event_budget.h"
#include "consumer/output/event_log.h"
#include "consumer/process/mappings_reread.h"
#include "consumer/process/process.h"
#include "consumer/process/process_targets.h"
#include "consumer/process/unwind_room.h"
#include "consumer/process/unwind_tables.h"
#include "shared/json/jsonw.h"

#define PROCESS_UNWIND_STARVED_MAX 64

/* What it works with; all borrowed. */
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
};

struct process_unwind {
	struct process_unwind_needs needs;
	struct unwind_files *files; /* owned; NULL: nothing is unwound by rows */
	struct unwind_tables tables;
	struct unwind_room room;
	struct process *first; /* of those that wait for files or for a table */
	struct process_key starved[PROCESS_UNWIND_STARVED_MAX]; /* whose files found no room */
	size_t starved_count;
	struct loop_source *source;
};

/* Nothing is unwound by rows yet. What `needs` points to is borrowed. */
void process_unwind_init(struct process_unwind *u, const struct process_unwind_needs *needs);

/* Starts the unwinder thread (before the system-call filter) with the pinned maps. 0 or -errno. */
int process_unwind_start(struct process_unwind *u);
/* Adds its source to the loop. 0 or -errno. */
int process_unwind_listen(struct process_unwind *u, struct loop *loop);
/* Before processes_done: gives up all plans. */
void process_unwind_done(struct process_unwind *u);

/*
 * Makes or renews the tables of those whose mappings were read since the last time
 * (process_queue_read), and has the kernel side take raw addresses of those that have one. After
 * each drain, and after a process was mapped outside of one.
 */
void process_unwind_step(struct process_unwind *u);

/* Goes on with what files or a grace were waited for; what the loop calls. */
void process_unwind_news(struct process_unwind *u);

/* Reads again what mappings_reread has noted, and steps; what the loop calls a little later. */
void process_unwind_settle(struct process_unwind *u);

/* A stack of `p` has left the mappings that its table has (mappings_reread_unmapped); steps. */
void process_unwind_unmapped(struct process_unwind *u, struct process *p, uint64_t time_ns);

/* `p` matches another rule, or none: renews its table if that wants its stacks in another way. */
void process_unwind_matched(struct process_unwind *u, struct process *p);

/*
 * A sample of `p` came. *ret_table is the table that a stack with SAMPLE_UNWOUND was walked by: its
 * own process's or an ancestor's (sample.fill), whatever is mapped there by now; NULL for any
 * other, and when that is not known any more. It counts as used. True when the kernel side did not
 * walk by the table that `p` has, because it does not take it as this image's: there will be
 * another, and its mappings are to be read again.
 */
bool process_unwind_sampled(struct process_unwind *u, struct process *p,
			    const struct sample *record, const struct walk_table **ret_table);

/* `p` is gone. */
void process_unwind_leave(struct process_unwind *u, struct process *p);

/* Writes the object `unwind` of the status method. */
void process_unwind_write_status(const struct process_unwind *u, struct jsonw *w);

#endif
