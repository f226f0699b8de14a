/* SPDX-License-Identifier: BSD-2-Clause */
/* input.h: the event files that a command line names, read into one store. */
#ifndef TROCAR_CTL_EVENTS_INPUT_H
#define TROCAR_CTL_EVENTS_INPUT_H

#include "ctl/cli/options.h"
#include "ctl/events/reader.h"
#include "ctl/events/select.h"
#include "ctl/events/store.h"

#define INPUT_FILES_MAX 256

struct input_file {
	const char *name; /* borrowed */
	int fd;
	uint64_t bytes;	   /* 0: not known */
	uint64_t first_ns; /* when its first event was; UINT64_MAX: not known */
};

struct input {
	struct input_file files[INPUT_FILES_MAX]; /* in the order in which they are read */
	unsigned int n;
	struct select select;
	struct store store;
	struct reader reader;
	uint32_t left; /* sessions that are selected and not shown, without --all */
};

/*
 * Opens the files (NULL ends them; none, or "-", is standard input), gives up unneeded privileges,
 * and reads them, the oldest first; then chooses the shown sessions (choose.h). Faults, and the
 * number of other sessions, are printed on the options' `err`. 0, or the enum command_exit to end
 * with. Release with input_done in every case.
 */
int input_read(const struct options *options, const char *const *files, struct input *ret_input);

/* The same for a command that prints the number of other sessions itself. */
int input_read_sessions(const struct options *options, const char *const *files,
			struct input *ret_input);

/*
 * The same for a command that adds stacks up: without --signal only the stacks of oncpu are read,
 * because time on a CPU and time of waiting do not add up. COMMAND_FAILED after printing on the
 * options' `err` that no stack is selected, and the sessions of the file; a session in which no
 * thread ran has an empty picture, with a message on `err`. With `apart` two files are compared:
 * each has its own bit, and its own session.
 */
int input_read_stacks(const struct options *options, const char *const *files, bool apart,
		      struct input *ret_input);

void input_done(struct input *input);

/*
 * COMMAND_FAILED after printing on the options' `err` that no stack is selected, and the stacks of
 * the file; else 0.
 */
int input_need_stacks(const struct options *options, const struct input *input);

/* Says on the options' `out` how many sessions are left, as the last line of a text. */
void input_say_left(const struct options *options, const struct input *input);

/* What a command ends with that has done its work: COMMAND_FAILED when lines were faulty. */
int input_status(const struct input *input);

/* Says on the options' `err` why it cannot go on: memory, or the budget. Returns COMMAND_FAILED. */
int input_fail(const struct options *options, const struct input *input, int error);

#endif
