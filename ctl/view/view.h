/* SPDX-License-Identifier: BSD-2-Clause */
/* view.h: turns the stacks of a store into paths of labels with a value. */
#ifndef TROCAR_CTL_VIEW_VIEW_H
#define TROCAR_CTL_VIEW_VIEW_H

#include "ctl/events/input.h"
#include "ctl/view/tree.h"

#define VIEW_BY_MAX 8

enum view_unit {
	VIEW_COUNT, /* samples */
	VIEW_NS,    /* the time that samples stand for */
};

/* The columns of a tree. */
enum view_columns {
	VIEW_ALL,    /* everything in column 0 */
	VIEW_PHASES, /* the baseline before, and during; the onset is not shown */
	VIEW_FILES,  /* the first file, the second */
};

struct view {
	struct input *input; /* borrowed */
	struct labels labels;
	enum view_unit unit;
	unsigned int by[VIEW_BY_MAX], n_by;
	bool wall;		  /* CPU time and waits, which add up to time */
	bool leaf_states;	  /* the state of its threads is above each stack */
	bool waits;		  /* some threads waited */
	unsigned int signals;	  /* number of different selected signals: 0, 1, 2 for more */
	unsigned int rules;	  /* number of selected rules, as for signals */
	uint32_t session;	  /* the only one shown, by view_choose; STORE_NONE: all */
	uint32_t signal;	  /* the only one shown, by view_only; STORE_NONE: all */
	bool busy;		  /* skip threads that wait for work or on a condition */
	enum store_phase earlier; /* column 0 of VIEW_PHASES */
};

/*
 * Reads the options --by, --count (default: `unit`) and --offsets; prints a fault on their `err`.
 * With more than one rule each stack has its rule as the lowest label. 0, -EINVAL, -ENOMEM,
 * -ENOSPC. Release with view_done in every case.
 */
int view_init(struct view *v, const struct options *options, struct input *input,
	      enum view_unit unit);
void view_done(struct view *v);

/*
 * Makes the view of an input that was read, and prints it: `print` returns 0, or an error of
 * input_fail. Returns enum command_exit.
 */
int view_print(const struct options *options, struct input *input, enum view_unit unit,
	       int (*print)(const struct options *options, struct view *view));

/*
 * Returns whether samples stand for different times, as samples of the recorder, of a session and
 * off-CPU samples do: then their number has no meaning.
 */
bool view_rates_differ(const struct view *v);

/*
 * Shows one session, or all of them (STORE_NONE), from now on. Column 0 of VIEW_PHASES is the phase
 * before; it is the onset if the user asked for that, or if no session has time or stacks before.
 */
void view_choose(struct view *v, uint32_t session);

/*
 * Shows the stacks of one signal alone (STORE_NONE: of all) from now on; with `busy` without the
 * stacks of threads that wait for work or on a condition.
 */
void view_only(struct view *v, uint32_t signal, bool busy);

/* Returns the number of a signal's name if the chosen session has stacks of it; else STORE_NONE. */
uint32_t view_find_signal(const struct view *v, const char *name);

/* Returns the column of a key; negative: the key is not shown. */
int view_column(const struct view *v, const struct store_key *key, enum view_columns columns);

/* Returns the word for a column of VIEW_PHASES: "before" or "onset", "during". */
const char *view_phase(const struct view *v, unsigned int column);

/* Counts all stacks in the tree. 0, -ENOMEM, -ENOSPC. */
int view_fill(struct view *v, enum view_columns columns, struct tree *tree);

/* Returns the length of a column's sessions in seconds; 0: it is not known for some session. */
double view_seconds(const struct view *v, enum view_columns columns, unsigned int column);

/*
 * Returns a new text for a person that describes the picture; the caller frees it. NULL: no memory.
 */
char *view_title(const struct view *v);

#endif
