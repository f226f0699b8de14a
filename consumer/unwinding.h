/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwinding.h: which process is unwound by rows, and by which. For each process whose mappings are
 * known a table is made as soon as all of its files are compiled, and published to the kernel side;
 * until then, and without one, its stacks are taken by frame pointers. A table is never changed: a
 * process whose mappings have changed gets another one, and the old one is used again when no tick
 * can be reading it (unwind_files.h). Main thread only.
 */
#ifndef TROCAR_CONSUMER_UNWINDING_H
#define TROCAR_CONSUMER_UNWINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/symbols/mappings.h"
#include "consumer/unwind/unwind_files.h"
#include "shared/abi.h"
#include "shared/jsonw.h"
#include "shared/rules.h"

struct agent;
struct process;
struct loop_source;
struct unwinding_plan;

/* How a process's stacks are taken, as far as it is known. */
enum unwinding_how {
	UNWINDING_UNKNOWN,
	UNWINDING_FP,	 /* by frame pointers alone */
	UNWINDING_TABLE, /* every mapping has rows */
	UNWINDING_MIXED, /* some have rows, the others are walked by frame pointers or are too many
			  */
};

/* What a process has of it. */
struct unwinding_state {
	struct unwinding_plan *plan;	 /* of a table in the making; owned */
	struct process *previous, *next; /* those that wait for files or for a table */
	bool waiting;			 /* stands in that list */
	enum rule_unwind by;		 /* as the rule wanted it when it was last followed */
	enum unwinding_how how, said;	 /* now, and as the last line said */
	uint32_t table;			 /* number plus 1; 0: none */
	uint32_t image;			 /* for which that was settled, as in struct sample */
	size_t cut;			 /* mappings that have no place in the table */
	uint64_t shape;			 /* of the plan that the table was made of */
	bool holes;			 /* it has not all that the plan had */
	bool asked;			 /* a stack has left the mappings since they were read */
	uint64_t published_ns, used_ns;	 /* the table; its last sample */
};

#define UNWINDING_AGAIN 64

struct unwinding_table; /* unwinding_room.h */

struct unwinding {
	struct unwind_files *files;	/* NULL: nothing is unwound by rows */
	int process_fd;			/* the tables; borrowed */
	struct unwind_claims *claims;	/* mmapped, borrowed */
	struct unwinding_table *tables; /* owned */
	uint32_t table_count, live;
	uint32_t turn;	       /* where a free table is looked for */
	struct process *first; /* of those that wait */
	struct process_key again[UNWINDING_AGAIN];
	size_t again_count;			     /* of the above: see unwinding_settle */
	struct process_key starved[UNWINDING_AGAIN]; /* whose files found no room */
	size_t starved_count;
	struct loop_source *source;
	uint64_t published; /* tables, ever */
	uint64_t full;	    /* times that a process found no table */
	uint64_t cut;	    /* mappings that found no place in a table */
	uint64_t missed;    /* mappings that are missing in tables: not confirmed by the kernel */
};

/* Starts it (before the system-call filter), where the pins have it. 0 or -errno. */
int unwinding_start(struct agent *a);
/* Adds its source to the loop. 0 or -errno. */
int unwinding_listen(struct agent *a);
void unwinding_done(struct agent *a);

/* Goes on with what files or a grace were waited for; what the loop calls. */
void unwinding_news(struct agent *a);

/*
 * Reads the mappings again of those whose image was new when they were read, when the dynamic
 * loader had hardly begun, and of those that could not be read so soon after the last time. What
 * the loop calls a little later; at most UNWINDING_AGAIN, of the rest a sample will tell.
 */
void unwinding_settle(struct agent *a);

/* The mappings of `p` were read: makes or renews its table. */
void unwinding_follow(struct agent *a, struct process *p);

/*
 * Whether the first table of its image is still to come. Until it is there the kernel tells the
 * files of its frames: libraries that come and go are in no list yet.
 */
bool unwinding_waits(const struct agent *a, const struct process *p);

/*
 * A stack of `p` has left the mappings that its table has: has them read again, at once if that was
 * not done just now, else a little later.
 */
void unwinding_unmapped(struct agent *a, struct process *p, uint64_t time_ns);

/* `p` matches another rule, or none: follows it again if that wants its stacks in another way. */
void unwinding_rule(struct agent *a, struct process *p);

/* A sample of `p` was walked by its table, or, when `unwound` is false, was not although it has
 * one: then the kernel side does not take it as this image's, and there will be another.
 */
void unwinding_sample(struct agent *a, struct process *p, bool unwound, uint64_t time_ns);

/* What the kernel side's walk of a sample went by, and how it ended. */
struct unwinding_walk {
	const struct mappings *maps; /* that the table was made of; valid until the next are read */
	enum unwind_end end;	     /* with what the kernel side does not tell */
	bool rows;		     /* the table has rows, else all was by frame pointers */
};

/*
 * The walk of a sample with SAMPLE_UNWOUND: of its own process's table or of an ancestor's
 * (sample.fill), whatever is mapped there by now. No mappings when that is not known any more. Its
 * end is corrected by whether the table left mappings out, and whether the last step was by the
 * frame pointer. The table counts as used.
 */
struct unwinding_walk unwinding_walked(struct agent *a, const struct sample *s);

/* `p` is gone, or is about to be freed. */
void unwinding_leave(struct agent *a, struct process *p);

/* "table", "fp", "mixed"; NULL while it is not known. */
const char *unwinding_name(enum unwinding_how how);

/* The object `unwind` of the status method. */
void unwinding_write_status(const struct agent *a, struct jsonw *w);

#endif
