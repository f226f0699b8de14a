/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/events/input.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/cli/command_exit.h"
#include "ctl/cli/confine.h"
#include "ctl/cli/text.h"
#include "ctl/events/choose.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define FIRST_LINES 1000 /* the first event of a file is searched in these */

/* How the files of an input are related. */
enum together {
	ONE_AFTER_THE_OTHER,
	APART,
};

static int open_file(const struct options *options, struct input *input, const char *name)
{
	bool from_standard = !strcmp(name, "-");
	struct input_file *file = &input->files[input->n];
	struct stat st;

	*file = (struct input_file){ .name = from_standard ? "standard input" : name };
	file->fd = from_standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
				 : open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (file->fd < 0 || fstat(file->fd, &st) < 0) {
		fprintf(options->err, "trocar: %s: %s\n", name, strerror(errno));
		return COMMAND_FAILED;
	}
	input->n++;
	if (from_standard && isatty(file->fd))
		fputs("trocar: reads event lines from the terminal: name a file, or --last; Ctrl-D "
		      "ends them\n",
		      options->err);
	if (S_ISDIR(st.st_mode)) {
		fprintf(options->err, "trocar: %s: is a folder: name files\n", name);
		return COMMAND_FAILED;
	}
	file->bytes = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
	return 0;
}

static int open_files(const struct options *options, const char *const *files, struct input *input)
{
	int r = files[0] ? 0 : open_file(options, input, "-");

	for (; r == 0 && files[0] && files[input->n];) {
		if (input->n == INPUT_FILES_MAX) {
			fprintf(options->err, "trocar: want at most %d files at a time\n",
				INPUT_FILES_MAX);
			return COMMAND_USAGE;
		}
		r = open_file(options, input, files[input->n]);
	}
	return r;
}

static bool pass_frames(void *context, struct json_reader *json, const struct event *event)
{
	return json_reader_skip(json);
}

/* Returns the time of the line's event; 0: it is not an event. */
static uint64_t time_of(struct unwrap *unwrap, const struct lines_line *line)
{
	struct event_fault fault;
	struct unwrapped found;
	struct event event;
	uint64_t ns = 0;

	if (!line->too_long &&
	    unwrap_line(unwrap, line->text, line->bytes, &found) == UNWRAP_EVENT &&
	    event_read(found.text, found.bytes, pass_frames, NULL, &event, &fault) && event.ts.data)
		(void)event_time(event.ts.data, event.ts.bytes, &ns);
	return ns;
}

/* Finds the time of the first event of a file, and rewinds the file. */
static void find_first(struct reader *reader, struct input_file *file)
{
	struct lines_line line;
	struct lines lines;

	file->first_ns = UINT64_MAX;
	if (!file->bytes || lseek(file->fd, 0, SEEK_CUR) != 0)
		return;
	if (lines_init(&lines, file->fd) == 0) {
		for (int i = 0; i < FIRST_LINES && lines_next(&lines, &line) > 0; i++) {
			uint64_t ns = time_of(&reader->unwrap, &line);

			if (!ns)
				continue;
			file->first_ns = ns;
			break;
		}
	}
	lines_done(&lines);
	(void)lseek(file->fd, 0, SEEK_SET);
}

static int compare_files(const void *a, const void *b)
{
	const struct input_file *x = a, *y = b;

	return (x->first_ns > y->first_ns) - (x->first_ns < y->first_ns);
}

/*
 * Sorts the files, the oldest first: a stack's parts may be on both sides of a rotation, and a
 * shell lists the newest file first. Insertion keeps the order of files without a time.
 */
static void order_files(struct input *input)
{
	for (unsigned int i = 0; i < input->n; i++)
		find_first(&input->reader, &input->files[i]);
	for (unsigned int i = 1; i < input->n; i++) {
		struct input_file file = input->files[i];
		unsigned int at = i;

		for (; at && compare_files(&input->files[at - 1], &file) > 0; at--)
			input->files[at] = input->files[at - 1];
		input->files[at] = file;
	}
}

static int read_files(const struct options *options, struct input *input, enum together together)
{
	struct progress progress;
	uint64_t all = 0;
	int r = 0;

	for (unsigned int i = 0; i < input->n; i++)
		all = input->files[i].bytes ? store_sum(all, input->files[i].bytes) : UINT64_MAX;
	progress_init(&progress, options->err, all == UINT64_MAX ? 0 : all);
	for (unsigned int i = 0; r == 0 && i < input->n; i++) {
		input->store.file = together == APART ? i : 0;
		r = reader_read(&input->reader, input->files[i].fd, input->files[i].name,
				&progress);
	}
	progress_done(&progress);
	if (r == 0)
		reader_end(&input->reader);
	return r < 0 ? COMMAND_FAILED : 0;
}

static int choose_input(const struct options *options, struct input *input, enum together together)
{
	int r = choose_sessions(options, &input->select, &input->store,
				together == APART ? input->n : 1, &input->left);

	if (r == -EINVAL)
		return COMMAND_FAILED;
	return r < 0 ? input_fail(options, input, r) : 0;
}

/* `signal` is the default if the command line has none; NULL: all signals. */
static int read_input(const struct options *options, const char *const *files,
		      enum together together, const char *signal, struct input *input)
{
	int r;

	*input = (struct input){ 0 };
	if (select_options(options, &input->select) < 0)
		return COMMAND_USAGE;
	if (!input->select.signal) {
		input->select.signal = signal;
		input->select.by_default = signal;
	}
	r = open_files(options, files, input);
	if (r)
		return r;
	pool_seed();
	if (store_init(&input->store, options->memory_mib << 20) < 0 ||
	    reader_init(&input->reader, &input->store, &input->select, options->err) < 0 ||
	    confine_now(CONFINE_READER) < 0)
		return input_fail(options, input, -ENOMEM);
	input->store.native = options->native;
	if (together == ONE_AFTER_THE_OTHER && input->n > 1)
		order_files(input);
	r = read_files(options, input, together);
	return r ? r : choose_input(options, input, together);
}

static void say_left(const struct options *options, const struct input *input)
{
	if (input->left)
		fprintf(options->err, "trocar: the newest session alone; %" PRIu32 " more: --all\n",
			input->left);
}

int input_read(const struct options *options, const char *const *files, struct input *ret_input)
{
	int r = read_input(options, files, ONE_AFTER_THE_OTHER, NULL, ret_input);

	if (r == 0)
		say_left(options, ret_input);
	return r;
}

int input_read_sessions(const struct options *options, const char *const *files,
			struct input *ret_input)
{
	return read_input(options, files, ONE_AFTER_THE_OTHER, NULL, ret_input);
}

int input_read_stacks(const struct options *options, const char *const *files, bool apart,
		      struct input *ret_input)
{
	enum together together = apart && files[0] && files[1] ? APART : ONE_AFTER_THE_OTHER;
	int r = read_input(options, files, together, "oncpu", ret_input);

	if (r)
		return r;
	say_left(options, ret_input);
	return input_need_stacks(options, ret_input);
}

void input_done(struct input *input)
{
	for (unsigned int i = 0; i < input->n; i++)
		cleanup_close(&input->files[i].fd);
	reader_done(&input->reader);
	if (input->store.plain)
		store_done(&input->store);
}

int input_need_stacks(const struct options *options, const struct input *input)
{
	if (input->store.keys.count)
		return 0;
	if (input->reader.not_asked) {
		fputs("trocar: no thread ran on a CPU in the selection; --signal offcpu has the "
		      "waits\n",
		      options->err);
		return 0;
	}
	if (!input->reader.unselected) {
		fputs("trocar: the session has no stacks in the lines that were read\n",
		      options->err);
		return COMMAND_FAILED;
	}
	fprintf(options->err, "trocar: no stack is selected, of %" PRIu64 " line%s; there are:\n",
		input->reader.unselected, text_s(input->reader.unselected));
	offers_print_stacks(&input->reader.offers, &input->store, options->err);
	return COMMAND_FAILED;
}

void input_say_left(const struct options *options, const struct input *input)
{
	if (input->left)
		fprintf(options->out, "\n%" PRIu32 " more session%s: --all\n", input->left,
			text_s(input->left));
}

int input_status(const struct input *input)
{
	return input->reader.faults ? COMMAND_FAILED : COMMAND_FINE;
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
