/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/symbolize/symbolize.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/cli/command_exit.h"
#include "ctl/cli/confine.h"
#include "ctl/cli/text.h"
#include "ctl/events/lines.h"
#include "ctl/events/reader.h"
#include "ctl/symbolize/missing.h"
#include "ctl/symbolize/offline_symbols.h"
#include "ctl/symbolize/stack_lines.h"
#include "ctl/symbolize/tally.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"
#include "shared/tools/parse.h"

/* A frame of the current line; its texts point into the line. */
struct frame {
	struct event_frame event;
	const char *text;
	size_t bytes;
};

struct symbolize {
	const struct options *options;
	const char *name; /* of the input */
	int fd;
	int dirs[OPTIONS_DIRS_MAX];
	uint64_t max_line_bytes;
	bool source;
	struct offline_symbols symbols;
	struct tally tally;
	struct missing missing;
	struct stack_lines *open; /* SYMBOLIZE_OPEN */
	struct frame *frames;	  /* STORE_FRAMES_MAX */
	size_t n;
	uint64_t faults, split, incomplete;
	uint64_t named, by[UNNAMED_COUNT_]; /* frames that had no name in the input */
	uint64_t others;		    /* frames of the kernel, or in memory without a file */
	uint64_t user, with_source;	    /* frames of files, and frames with a source line */
	int error;			    /* error that ends the command: -ENOMEM */
};

static void say_fault(struct symbolize *s, uint64_t number, const struct event_fault *fault)
{
	_cleanup_free_ char *key = text_tame(fault->key.data ? fault->key.data : "",
					     fault->key.data ? fault->key.bytes : 0);

	if (s->faults++ >= READER_FAULTS_SHOWN)
		return;
	fprintf(s->options->err, "trocar: %s:%" PRIu64 ":%zu: ", s->name, number, fault->at + 1);
	if (key && *key)
		fprintf(s->options->err, "%s: ", key);
	fprintf(s->options->err, "%s\n", fault->fault);
}

/* ---- frames */

static bool take_frames(void *context, struct json_reader *json, const struct event *event)
{
	struct symbolize *s = context;

	s->n = 0;
	if (!json_reader_array(json))
		return false;
	while (json_reader_element(json)) {
		struct frame *f = &s->frames[s->n];

		if (s->n == STORE_FRAMES_MAX)
			return json_reader_refuse(json, "want at most 4096 frames");
		json_reader_peek(json);
		f->text = json->at;
		if (!event_frame(json, &f->event))
			return false;
		f->bytes = (size_t)(json->at - f->text);
		s->n++;
	}
	return !json->fault;
}

static bool is_of_file(const struct event_frame *f)
{
	return event_is(&f->kind, "user") || event_is(&f->kind, "runtime");
}

/* Counts the result for a frame of a file. */
static void count_frame(struct symbolize *s, const struct event_frame *f,
			const struct offline_frame *found)
{
	s->user++;
	s->with_source += found->source != NULL;
	if (f->fn.data)
		return;
	s->named += found->name != NULL;
	s->by[found->unnamed] += found->name == NULL;
	if (!found->name)
		missing_add(&s->missing, found->unnamed, &f->build_id, &f->module);
}

/* Looks up a frame; sets nothing if nothing is requested. */
static int look_up(struct symbolize *s, const struct event_frame *f, bool caller,
		   struct offline_frame *ret_found)
{
	struct offline_frame found = { .unnamed = UNNAMED_NO_BUILD_ID };
	int r = 0;

	*ret_found = (struct offline_frame){ 0 };
	if (!is_of_file(f)) {
		s->others += !f->fn.data;
		return 0;
	}
	if (f->fn.data && !s->source)
		return 0;
	if (f->has_offset)
		r = offline_symbols_find(
			&s->symbols, &f->build_id, &f->module,
			&(struct answer_question){ .offset = f->offset, .caller = caller }, &found);
	if (f->fn.data)
		found.name = NULL;
	count_frame(s, f, &found);
	*ret_found = found;
	return r;
}

/* ---- stacks */

/* Gives up a stack with missing parts: writes its lines unchanged. */
static void give_up(struct symbolize *s, struct stack_lines *l)
{
	fwrite(l->original.data, 1, l->original.bytes, s->options->out);
	s->incomplete++;
	stack_lines_reset(l);
}

static int add_frames(struct symbolize *s, struct stack_lines *l)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct frame *f = &s->frames[i];
		struct offline_frame found;
		int r = look_up(s, &f->event,
				!f->event.exact && stack_lines_is_caller(l, &f->event), &found);

		if (r == 0)
			r = stack_lines_frame(l, &f->event, f->text, f->bytes, &found);
		if (r == 0 && !f->event.fn.data)
			r = tally_add(&s->tally, l->session.data, l->session.bytes, &f->event,
				      l->count, found.name != NULL);
		/* Without space for the sums, session.end is written unchanged. */
		if (r < 0 && r != -ENOSPC)
			return r;
	}
	return 0;
}

/* Returns the place of the stack of the line; for a first part a free place. */
static struct stack_lines *find_place(struct symbolize *s, const struct event *event)
{
	struct stack_lines *free_place = NULL;

	for (size_t i = 0; i < SYMBOLIZE_OPEN; i++) {
		struct stack_lines *l = &s->open[i];

		if (event->parts && stack_lines_is(l, event)) {
			if (event->part == l->next && event->parts == l->parts)
				return l;
			give_up(s, l);
			free_place = l;
		} else if (!l->next && !free_place) {
			free_place = l;
		}
	}
	if (event->parts && event->part != 1)
		return NULL;
	if (!free_place) {
		free_place = &s->open[0];
		give_up(s, free_place);
	}
	return free_place;
}

/* False: the line must be written unchanged. */
static bool take_stack(struct symbolize *s, const struct event *event,
		       const struct lines_line *line)
{
	struct stack_lines *l = find_place(s, event);
	int r = 0;

	if (!l) {
		s->incomplete++;
		return false;
	}
	if (!l->next)
		r = stack_lines_begin(l, event, line->text, line->bytes);
	if (event->parts)
		stack_lines_keep(l, line->text, line->bytes);
	if (r == 0)
		r = add_frames(s, l);
	if (r == 0 && l->next++ == l->parts) {
		s->split += !event->parts;
		r = stack_lines_write(l, s->max_line_bytes, s->split, s->options->out);
		stack_lines_reset(l);
		s->error = r;
		return true;
	}
	if (r == -ENOMEM) {
		s->error = r;
	} else if (r < 0 && event->parts) {
		give_up(s, l);
	} else if (r < 0) {
		stack_lines_reset(l);
		return false;
	}
	return true;
}

/* ---- lines */

static bool take_end(struct symbolize *s, const struct event *event, const struct lines_line *line)
{
	_cleanup_(jsonw_done) struct jsonw w = { 0 };
	int r;

	jsonw_init(&w, STACK_LINES_MAX_BYTES);
	r = tally_end(&s->tally, event, line->text, line->bytes,
		      MAX(s->max_line_bytes, (uint64_t)line->bytes), &w);
	if (r < 0)
		return false;
	fwrite(w.data, 1, w.bytes, s->options->out);
	fputc('\n', s->options->out);
	return true;
}

/* Returns whether the line was written in another form. */
static bool take_line(struct symbolize *s, const struct lines_line *line, uint64_t number)
{
	struct event_fault fault;
	struct event event;

	if (!line->bytes)
		return false;
	if (!event_read(line->text, line->bytes, take_frames, s, &event, &fault)) {
		say_fault(s, number, &fault);
		return false;
	}
	if (event.type == EVENT_STACK)
		return take_stack(s, &event, line);
	return event.type == EVENT_SESSION_END && take_end(s, &event, line);
}

/* Writes unreadable lines unchanged: a filter in a pipe loses nothing. */
static int read_lines(struct symbolize *s)
{
	static const struct event_fault too_long = { .fault = "want lines of at most 1 MiB: lost",
						     .at = LINES_MAX_BYTES };
	_cleanup_(lines_done) struct lines lines = { 0 };
	struct lines_line line;
	int r = lines_init(&lines, s->fd);

	while (r == 0 && (r = lines_next(&lines, &line)) > 0) {
		r = 0;
		if (line.too_long) {
			say_fault(s, lines.number, &too_long);
		} else if (!take_line(s, &line, lines.number)) {
			fwrite(line.text, 1, line.bytes, s->options->out);
			if (line.whole)
				fputc('\n', s->options->out);
		}
		if (s->error < 0)
			r = s->error;
	}
	for (size_t i = 0; i < SYMBOLIZE_OPEN; i++)
		if (s->open[i].next)
			give_up(s, &s->open[i]);
	return r;
}

/* ---- the messages at the end */

static void tell_folders(const struct symbolize *s)
{
	const struct debug_files *d = &s->symbols.files;
	_cleanup_free_ char *path = NULL;

	if (!d->passed_over)
		return;
	if (d->first)
		path = text_tame(pool_text(&d->paths, d->first - 1),
				 strlen(pool_text(&d->paths, d->first - 1)));
	fprintf(s->options->err,
		"trocar: cannot read %" PRIu64 " file%s or folder%s; first %s: %s\n",
		d->passed_over, text_s(d->passed_over), text_s(d->passed_over), path ? path : "-",
		strerror(d->first_error));
}

static void tell_totals(struct symbolize *s)
{
	FILE *err = s->options->err;
	uint64_t unnamed = 0;

	for (int i = 1; i < UNNAMED_COUNT_; i++)
		unnamed += s->by[i];
	fprintf(err, "trocar: %s: %" PRIu64 " frame%s named, %" PRIu64 " still without a name\n",
		s->name, s->named, text_s(s->named), unnamed + s->others);
	for (int i = 1; i < UNNAMED_COUNT_; i++)
		if (s->by[i])
			fprintf(err, "  %" PRIu64 " %s: %s\n", s->by[i],
				unnamed_word((enum unnamed)i), unnamed_help((enum unnamed)i));
	if (s->others)
		fprintf(err, "  %" PRIu64 " of the kernel, or in memory without a file\n",
			s->others);
	missing_tell(&s->missing, err);
	if (s->source)
		fprintf(err,
			"trocar: %" PRIu64 " of %" PRIu64 " frame%s of files with a source line\n",
			s->with_source, s->user, text_s(s->user));
	if (s->incomplete)
		fprintf(err, "trocar: %" PRIu64 " stack%s without all parts: left as before\n",
			s->incomplete, text_s(s->incomplete));
	if (s->faults)
		fprintf(err, "trocar: %" PRIu64 " faulty line%s: left as before\n", s->faults,
			text_s(s->faults));
	tell_folders(s);
}

/* ---- the command */

static int fail_command(const struct symbolize *s, const char *what, int error)
{
	fprintf(s->options->err, "trocar: %s%s%s\n", what, *what ? ": " : "", strerror(-error));
	return COMMAND_FAILED;
}

/* Checks that the folder exists: its files are opened one by one, and each may be missing. */
static int check_cache(const struct symbolize *s)
{
	const char *cache = s->options->debuginfod_cache;
	_cleanup_close_ int fd = -1;

	if (!cache)
		return 0;
	fd = open(cache, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? fail_command(s, cache, -errno) : 0;
}

/* Opens the files of the command line. */
static int open_all(struct symbolize *s, const char *file)
{
	const struct options *o = s->options;
	bool from_standard = !file || !strcmp(file, "-");

	s->name = from_standard ? "standard input" : file;
	s->fd = from_standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
			      : open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (s->fd < 0)
		return fail_command(s, s->name, -errno);
	for (size_t i = 0; i < o->dirs.count; i++) {
		s->dirs[i] = open(o->dirs.items[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (s->dirs[i] < 0)
			return fail_command(s, o->dirs.items[i], -errno);
	}
	return check_cache(s);
}

static int make_parts(struct symbolize *s)
{
	int r = offline_symbols_init(&s->symbols, s->source);

	s->open = calloc(SYMBOLIZE_OPEN, sizeof(*s->open));
	s->frames = calloc(STORE_FRAMES_MAX, sizeof(*s->frames));
	for (size_t i = 0; s->open && i < SYMBOLIZE_OPEN; i++)
		stack_lines_init(&s->open[i]);
	return r < 0 || !s->open || !s->frames ? -ENOMEM : 0;
}

static void free_parts(struct symbolize *s)
{
	offline_symbols_done(&s->symbols);
	tally_done(&s->tally);
	for (size_t i = 0; s->open && i < SYMBOLIZE_OPEN; i++)
		stack_lines_done(&s->open[i]);
	free(s->open);
	free(s->frames);
	cleanup_close(&s->fd);
	for (size_t i = 0; i < OPTIONS_DIRS_MAX; i++)
		cleanup_close(&s->dirs[i]);
}

static int run_symbolize(struct symbolize *s)
{
	const struct options *o = s->options;
	int r;

	pool_seed();
	r = make_parts(s);
	s->symbols.files.cache = o->debuginfod_cache;
	if (r == 0)
		r = confine_now(CONFINE_OPENER);
	if (r < 0)
		return fail_command(s, "", r);
	for (size_t i = 0; i < o->dirs.count; i++) {
		r = debug_files_add(&s->symbols.files, s->dirs[i], o->dirs.items[i]);
		if (r < 0)
			return fail_command(s, o->dirs.items[i], r);
	}
	r = read_lines(s);
	tell_totals(s);
	if (r < 0) {
		fprintf(o->err, "trocar: %s: %s\n", s->name, unpack_error(r));
		return COMMAND_FAILED;
	}
	return s->faults ? COMMAND_FAILED : COMMAND_FINE;
}

int symbolize_call(const struct options *options, const char *const *arguments)
{
	_cleanup_(free_parts) struct symbolize s = {
		.options = options,
		.fd = -1,
		.max_line_bytes = options->max_line_bytes,
		.source = options->source,
	};
	int r;

	for (size_t i = 0; i < OPTIONS_DIRS_MAX; i++)
		s.dirs[i] = -1;
	tally_init(&s.tally);
	r = open_all(&s, arguments[0]);
	return r ? r : run_symbolize(&s);
}
