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
	uint64_t first_ns; /* time of its first event; UINT64_MAX: not known */
};

struct input {
	struct input_file files[INPUT_FILES_MAX]; /* in the order in which they are read */
	unsigned int n;
	struct select select;
	struct store store;
	struct reader reader;
	uint32_t left; /* selected sessions that are not shown, because --all is not given */
};

/*
 * Opens the files (NULL ends them; none, or "-", is standard input), gives up unneeded privileges,
 * and reads them, the oldest first; then chooses the shown sessions (choose.h). Faults, and the
 * number of other sessions, are printed on the options' `err`. 0, or the enum command_exit to end
 * with. Release with input_done in every case.
 */
int input_read(const struct options *options, const char *const *files, struct input *ret_input);

/* As input_read, for a command that prints the number of other sessions itself. */
int input_read_sessions(const struct options *options, const char *const *files,
			struct input *ret_input);

/*
 * As input_read, for a command that adds up stacks: without --signal it reads only the stacks of
 * oncpu, because CPU time and waiting time cannot be added up. COMMAND_FAILED: no stack is
 * selected; this and the sessions of the file were printed on the options' `err`. A session in
 * which no thread ran gives an empty picture, with a message on `err`. With `apart` two files are
 * compared: each has its own bit, and its own session.
 */
int input_read_stacks(const struct options *options, const char *const *files, bool apart,
		      struct input *ret_input);

void input_done(struct input *input);

/*
 * Returns 0, or COMMAND_FAILED if no stack is selected; this and the stacks of the file were then
 * printed on the options' `err`.
 */
int input_need_stacks(const struct options *options, const struct input *input);

/* Prints on the options' `out` how many sessions are not shown, as the last line of a text. */
void input_say_left(const struct options *options, const struct input *input);

/* Returns the exit status of a finished command: COMMAND_FAILED if lines were faulty. */
int input_status(const struct input *input);

/*
 * Prints on the options' `err` why the command cannot continue: memory, or the budget. Returns
 * COMMAND_FAILED.
 */
int input_fail(const struct options *options, const struct input *input, int error);

#endif
