/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/events/input.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "ctl/cli/command_exit.h"
#include "ctl/cli/confine.h"
#include "ctl/events/reader.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"
#include "shared/tools/parse.h"

static int open_files(const struct options *options, const char *const *files, struct input *input)
{
	static const char *const standard[] = { "-", NULL };

	if (!files[0])
		files = standard;
	for (; input->n < INPUT_FILES_MAX && files[input->n]; input->n++) {
		const char *name = files[input->n];
		bool from_standard = !strcmp(name, "-");
		int fd = from_standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
				       : open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY);

		if (fd < 0) {
			fprintf(options->err, "trocar: %s: %s\n", name, strerror(errno));
			return COMMAND_FAILED;
		}
		input->fds[input->n] = fd;
		input->names[input->n] = from_standard ? "standard input" : name;
	}
	return 0;
}

static int read_file(const struct options *options, struct input *input, unsigned int file)
{
	_cleanup_(reader_done) struct reader reader;
	int r;

	input->store.file = file;
	r = reader_init(&reader, &input->store, &input->select, input->names[file], options->err);
	if (r < 0)
		return input_fail(options, input, r);
	r = reader_read(&reader, input->fds[file]);
	input->faults += reader.faults;
	if (r == 0 && !reader.stacks)
		fprintf(options->err, "trocar: %s: no stack line is selected, of %" PRIu64 "\n",
			input->names[file], reader.unselected);
	return r < 0 ? COMMAND_FAILED : 0;
}

int input_read(const struct options *options, const char *const *files, struct input *ret_input)
{
	struct input *input = ret_input;
	int r;

	*input = (struct input){ .fds = { -1, -1 } };
	if (select_options(options, &input->select) < 0)
		return COMMAND_USAGE;
	r = open_files(options, files, input);
	if (r)
		return r;
	pool_seed();
	if (store_init(&input->store, options->memory_mib << 20) < 0 ||
	    confine_now(CONFINE_READER) < 0)
		return input_fail(options, input, -ENOMEM);
	for (unsigned int i = 0; i < input->n; i++) {
		r = read_file(options, input, i);
		if (r)
			return r;
	}
	return 0;
}

void input_done(struct input *input)
{
	for (unsigned int i = 0; i < INPUT_FILES_MAX; i++)
		cleanup_close(&input->fds[i]);
	if (input->store.plain)
		store_done(&input->store);
}

int input_status(const struct input *input)
{
	return input->faults ? COMMAND_FAILED : COMMAND_FINE;
}

int input_fail(const struct options *options, const struct input *input, int error)
{
	if (error == -ENOSPC)
		fprintf(options->err,
			"trocar: this picture needs more than %" PRIu64 " MiB of memory: select "
			"less, or allow more (--memory-mib)\n",
			input->store.budget.max_bytes >> 20);
	else
		fprintf(options->err, "trocar: %s\n", strerror(-error));
	return COMMAND_FAILED;
}
