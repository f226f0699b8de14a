/* SPDX-License-Identifier: BSD-2-Clause */
/* input.h: the event files that a command line names, read into one store. */
#ifndef TROCAR_CTL_EVENTS_INPUT_H
#define TROCAR_CTL_EVENTS_INPUT_H

#include "ctl/cli/options.h"
#include "ctl/events/select.h"
#include "ctl/events/store.h"

#define INPUT_FILES_MAX 2

struct input {
	const char *names[INPUT_FILES_MAX]; /* borrowed */
	int fds[INPUT_FILES_MAX];
	unsigned int n;
	struct select select;
	struct store store;
	uint64_t faults; /* faulty lines that were passed over */
};

/*
 * Opens the files (NULL ends them; none, or "-", is standard input), gives up what reading does not
 * need, and reads. What is wrong is said on the options' `err`. 0, or the enum command_exit to end
 * with. Release with input_done in every case.
 */
int input_read(const struct options *options, const char *const *files, struct input *ret_input);
void input_done(struct input *input);

/* What a command ends with that has done its work: COMMAND_FAILED when lines were faulty. */
int input_status(const struct input *input);

/* Says on the options' `err` why it cannot go on: memory, or the budget. Returns COMMAND_FAILED. */
int input_fail(const struct options *options, const struct input *input, int error);

#endif
