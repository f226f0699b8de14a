/* SPDX-License-Identifier: BSD-2-Clause */
/* view.h: how the stacks of a store become paths of labels with a value. */
#ifndef TROCAR_CTL_VIEW_VIEW_H
#define TROCAR_CTL_VIEW_VIEW_H

#include "ctl/events/input.h"
#include "ctl/view/tree.h"

#define VIEW_BY_MAX 8

enum view_unit {
	VIEW_COUNT, /* samples */
	VIEW_NS,    /* what they stand for */
};

/* What the columns of a tree are. */
enum view_columns {
	VIEW_ALL,    /* everything in column 0 */
	VIEW_PHASES, /* the calm before, and during; what lies between is not shown */
	VIEW_FILES,  /* the first file, the second */
};

struct view {
	struct input *input; /* borrowed */
	struct labels labels;
	enum view_unit unit;
	unsigned int by[VIEW_BY_MAX], n_by;
	bool wall;		  /* CPU time and waits, which add up to time */
	bool leaf_states;	  /* above each stack is the state of its threads */
	bool waits;		  /* some threads waited */
	unsigned int signals;	  /* how many different ones were selected: 0, 1, 2 for more */
	unsigned int rules;	  /* the same, of one file where two are compared */
	uint32_t session;	  /* only this one, by view_choose; STORE_NONE: all */
	uint32_t signal;	  /* only this one, by view_only; STORE_NONE: all */
	bool busy;		  /* threads that wait for work, or on a condition, are left out */
	enum store_phase earlier; /* column 0 of VIEW_PHASES */
};

/*
 * From the options --by, --count (without it: `unit`) and --offsets; prints a fault on their `err`.
 * With more than one rule each stack stands on its rule. 0, -EINVAL, -ENOMEM, -ENOSPC. Release with
 * view_done in every case.
 */
int view_init(struct view *v, const struct options *options, struct input *input,
	      enum view_unit unit);
void view_done(struct view *v);

/*
 * Whether samples stand for different times, as those of the recorder and of a session do, or
 * looks: then their number means nothing.
 */
bool view_rates_differ(const struct view *v);

/*
 * Shows one session, or all of them (STORE_NONE), from now on. Column 0 of VIEW_PHASES is the phase
 * before; it is the onset where that is asked for, or where no session has time or stacks before.
 */
void view_choose(struct view *v, uint32_t session);

/*
 * Shows the stacks of one signal alone (STORE_NONE: of all) from now on; with `busy` without those
 * of threads that wait for work or on a condition.
 */
void view_only(struct view *v, uint32_t signal, bool busy);

/* The number of a signal's name, where the chosen session has stacks of it; else STORE_NONE. */
uint32_t view_find_signal(const struct view *v, const char *name);

/* The column of a key; negative: it is not shown. */
int view_column(const struct view *v, const struct store_key *key, enum view_columns columns);

/* The word for a column of VIEW_PHASES: "before" or "onset", "during". */
const char *view_phase(const struct view *v, unsigned int column);

/* Counts all stacks in the tree. 0, -ENOMEM, -ENOSPC. */
int view_fill(struct view *v, enum view_columns columns, struct tree *tree);

/* The seconds that a column's sessions lasted; 0: some session does not have it. */
double view_seconds(const struct view *v, enum view_columns columns, unsigned int column);

/* What the picture shows, as a new text for a person; the caller frees. NULL: no memory. */
char *view_title(const struct view *v);

#endif
