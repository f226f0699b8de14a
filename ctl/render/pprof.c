/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each numbered kind of the format (mapping, function, location, string) is a pool: a number in the
 * profile is the pool's number, plus one where 0 means none. A first pass over all samples fills
 * the pools; then each element is written as a field into the gzip stream.
 */
#include "ctl/render/pprof.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "ctl/cli/command_exit.h"
#include "ctl/render/proto.h"
#include "ctl/view/program.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define MAPPING_STEP (1ULL << 20) /* mappings begin at multiples of this */
#define OFFSET_MAX   (1ULL << 44) /* no file is larger */

/* Numbers of profile.proto. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_MAPPING,
	PROFILE_LOCATION,
	PROFILE_FUNCTION,
	PROFILE_STRING,
	PROFILE_TIME = 9,
	PROFILE_DURATION,
	PROFILE_PERIOD_TYPE,
	PROFILE_PERIOD,
	PROFILE_COMMENT
};
enum { TYPE_TYPE = 1, TYPE_UNIT };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_TEXT, LABEL_NUMBER };
enum {
	MAPPING_ID = 1,
	MAPPING_START,
	MAPPING_LIMIT,
	MAPPING_OFFSET,
	MAPPING_FILE,
	MAPPING_BUILD_ID,
	MAPPING_HAS_FUNCTIONS,
	MAPPING_HAS_FILENAMES,
	MAPPING_HAS_LINES
};
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE };
enum { LINE_FUNCTION = 1, LINE_NUMBER };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE };

/* Texts are numbers of strings of the profile; other numbers are those of the pools, plus one. */
struct mapping {
	uint32_t file, build_id;
};

/* Functions with one name in two files are two functions. */
struct function {
	uint32_t name, raw, file, mapping;
};

struct location {
	uint32_t mapping, function;
	uint32_t line, zero;
	uint64_t offset; /* in the file; 0: not in a file */
};

/* The properties of a mapping, after all its frames were seen. */
struct extent {
	uint64_t start, bytes;
	bool unnamed; /* some frame has no function */
	bool lines;   /* some have a source line */
};

struct profile {
	struct view *view;
	struct pool mappings, functions, locations;
	struct extent *extents;
	uint32_t extents_space;
	uint32_t *of_frame; /* location + 1; 0: not made yet */
	uint32_t of_frame_space;
	struct proto message, part;
	struct proto_gzip gzip;
};

static int number_string(struct profile *p, const char *text, uint32_t *ret_string)
{
	return labels_plain(&p->view->labels, text, ret_string);
}

/* Stores a text of the store; no text is the empty string, number 0. */
static int store_string(struct profile *p, uint32_t text, uint32_t *ret_string)
{
	if (text == STORE_NONE)
		return number_string(p, "", ret_string);
	return labels_text(&p->view->labels, text, ret_string);
}

/* In the kernel the offset is relative to the function, in JIT code an address. */
static bool has_file_offset(const struct store_frame *f)
{
	return f->kind != STORE_KERNEL && f->kind != STORE_JIT && f->has_offset &&
	       f->offset < OFFSET_MAX;
}

/* Finds or makes the mapping of a frame's file; its number is counted from 0. */
static int find_mapping(struct profile *p, const struct store_frame *f, uint32_t *ret_number)
{
	struct mapping mapping = { 0 };
	int r;

	r = f->kind == STORE_KERNEL ? number_string(p, "[kernel.kallsyms]", &mapping.file)
				    : store_string(p, f->module, &mapping.file);
	if (r == 0)
		r = store_string(p, f->build_id, &mapping.build_id);
	if (r == 0)
		r = pool_put(&p->mappings, &mapping, sizeof(mapping), ret_number);
	return r ? r
		 : pool_grow(p->mappings.budget, (void **)&p->extents, &p->extents_space,
			     *ret_number + 1, sizeof(*p->extents));
}

static int add_mapping(struct profile *p, const struct store_frame *f, uint32_t *ret_mapping)
{
	uint32_t number = 0;
	int r = find_mapping(p, f, &number);

	if (r < 0)
		return r;
	p->extents[number].unnamed |= f->fn == STORE_NONE;
	p->extents[number].lines |= f->line > 0;
	if (has_file_offset(f))
		p->extents[number].bytes = MAX(p->extents[number].bytes, f->offset + 1);
	*ret_mapping = number + 1;
	return 0;
}

static int add_function(struct profile *p, const struct store_frame *f, uint32_t mapping,
			uint32_t *ret_function)
{
	struct function function = { .mapping = mapping };
	uint32_t number;
	int r;

	*ret_function = 0;
	if (f->fn == STORE_NONE)
		return 0;
	r = store_string(p, f->fn, &function.name);
	if (r == 0)
		r = store_string(p, f->raw != STORE_NONE ? f->raw : f->fn, &function.raw);
	if (r == 0)
		r = store_string(p, f->file, &function.file);
	if (r == 0)
		r = pool_put(&p->functions, &function, sizeof(function), &number);
	if (r == 0)
		*ret_function = number + 1;
	return r;
}

static int add_location(struct profile *p, uint32_t frame)
{
	const struct store_frame *f = store_frame_get(&p->view->input->store, frame);
	struct location location = { .line = f->line };
	uint32_t number;
	int r;

	r = pool_grow(p->locations.budget, (void **)&p->of_frame, &p->of_frame_space, frame + 1,
		      sizeof(*p->of_frame));
	if (r < 0 || p->of_frame[frame])
		return r;
	if (has_file_offset(f))
		location.offset = f->offset;
	r = add_mapping(p, f, &location.mapping);
	if (r == 0)
		r = add_function(p, f, location.mapping, &location.function);
	if (r == 0)
		r = pool_put(&p->locations, &location, sizeof(location), &number);
	if (r == 0)
		p->of_frame[frame] = number + 1;
	return r;
}

/* Places mappings one after the other, so that an address is one place in one file. */
static void place_mappings(struct profile *p)
{
	uint64_t at = MAPPING_STEP;

	for (uint32_t i = 0; i < p->mappings.count; i++) {
		p->extents[i].start = at;
		at += ALIGN_UP(p->extents[i].bytes + 1, MAPPING_STEP);
	}
}

/* Writes p->message as a field of the profile, and begins the next. */
static void put_message(struct profile *p, unsigned int field)
{
	proto_reset(&p->part);
	proto_message(&p->part, field, &p->message);
	proto_gzip_put(&p->gzip, p->part.data, p->part.bytes);
	proto_reset(&p->message);
}

static void put_number(struct profile *p, unsigned int field, uint64_t number)
{
	proto_reset(&p->part);
	proto_u64(&p->part, field, number);
	proto_gzip_put(&p->gzip, p->part.data, p->part.bytes);
}

static int put_type(struct profile *p, unsigned int field, const char *type, const char *unit)
{
	uint32_t type_string = 0, unit_string = 0;
	int r = number_string(p, type, &type_string);

	if (r == 0)
		r = number_string(p, unit, &unit_string);
	if (r < 0)
		return r;
	proto_u64(&p->message, TYPE_TYPE, type_string);
	proto_u64(&p->message, TYPE_UNIT, unit_string);
	put_message(p, field);
	return 0;
}

static int put_label(struct profile *p, const char *key, unsigned int field, uint64_t value)
{
	uint32_t key_string;
	int r = number_string(p, key, &key_string);

	if (r < 0)
		return r;
	proto_reset(&p->part);
	proto_u64(&p->part, LABEL_KEY, key_string);
	proto_u64(&p->part, field, value);
	proto_message(&p->message, SAMPLE_LABEL, &p->part);
	return 0;
}

/* Writes a text label; a missing text is omitted. */
static int put_text_label(struct profile *p, const char *key, uint32_t text)
{
	uint32_t text_string;
	int r;

	if (text == STORE_NONE)
		return 0;
	r = store_string(p, text, &text_string);
	return r < 0 ? r : put_label(p, key, LABEL_TEXT, text_string);
}

static int put_labels(struct profile *p, const struct store_key *key)
{
	const struct store_session *session = &p->view->input->store.sessions[key->session];
	const struct {
		const char *key;
		uint32_t text;
	} labels[] = {
		{ "session", session->id },    { "rule", session->rule },
		{ "cgroup", session->cgroup }, { "signal", key->signal },
		{ "comm", key->comm },	       { "exe", key->exe },
	};
	uint32_t phase, state;
	int r;

	r = number_string(p, store_phase_word(key->phase), &phase);
	if (r == 0)
		r = put_label(p, "phase", LABEL_TEXT, phase);
	if (r == 0 && p->view->waits)
		r = number_string(p, store_state_word(key->state), &state);
	if (r == 0 && p->view->waits)
		r = put_label(p, "state", LABEL_TEXT, state);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(labels); i++)
		r = put_text_label(p, labels[i].key, labels[i].text);
	return r < 0 ? r : put_label(p, "pid", LABEL_NUMBER, key->pid);
}

static int put_sample(struct profile *p, uint32_t number)
{
	const struct store *s = &p->view->input->store;
	const struct store_key *key = store_key_get(s, number);
	const struct store_value *value = &s->values[number];
	uint64_t ns = MIN(value->weight_ns, (uint64_t)INT64_MAX);
	uint64_t values[] = { MIN(value->count, (uint64_t)INT64_MAX), ns, 0 };
	size_t n_values = p->view->wall ? 3 : 2;
	uint64_t locations[STORE_FRAMES_MAX];
	const uint32_t *frames;
	uint32_t n;
	int r;

	frames = store_frames(s, key->stack, &n);
	for (uint32_t i = 0; i < n; i++)
		locations[i] = p->of_frame[frames[i]];
	proto_packed(&p->message, SAMPLE_LOCATION, locations, n);
	if (p->view->wall && key->state != STORE_RUNS) {
		values[1] = 0;
		values[2] = ns;
	}
	proto_packed(&p->message, SAMPLE_VALUE, values, n_values);
	r = put_labels(p, key);
	put_message(p, PROFILE_SAMPLE);
	return r;
}

static void put_mappings(struct profile *p)
{
	for (uint32_t i = 0; i < p->mappings.count; i++) {
		size_t bytes;
		const struct mapping *mapping = pool_get(&p->mappings, i, &bytes);
		const struct extent *e = &p->extents[i];

		proto_u64(&p->message, MAPPING_ID, i + 1);
		proto_u64(&p->message, MAPPING_START, e->start);
		proto_u64(&p->message, MAPPING_LIMIT, e->start + e->bytes + 1);
		proto_u64(&p->message, MAPPING_FILE, mapping->file);
		proto_u64(&p->message, MAPPING_BUILD_ID, mapping->build_id);
		proto_u64(&p->message, MAPPING_HAS_FUNCTIONS, !e->unnamed);
		proto_u64(&p->message, MAPPING_HAS_FILENAMES, e->lines);
		proto_u64(&p->message, MAPPING_HAS_LINES, e->lines);
		put_message(p, PROFILE_MAPPING);
	}
}

static void put_locations(struct profile *p)
{
	for (uint32_t i = 0; i < p->locations.count; i++) {
		size_t bytes;
		const struct location *location = pool_get(&p->locations, i, &bytes);
		uint64_t start = p->extents[location->mapping - 1].start;

		proto_u64(&p->message, LOCATION_ID, i + 1);
		proto_u64(&p->message, LOCATION_MAPPING, location->mapping);
		proto_u64(&p->message, LOCATION_ADDRESS,
			  location->offset ? start + location->offset : 0);
		proto_reset(&p->part);
		proto_u64(&p->part, LINE_FUNCTION, location->function);
		proto_u64(&p->part, LINE_NUMBER, location->line);
		if (location->function)
			proto_message(&p->message, LOCATION_LINE, &p->part);
		put_message(p, PROFILE_LOCATION);
	}
}

static void put_functions(struct profile *p)
{
	for (uint32_t i = 0; i < p->functions.count; i++) {
		size_t bytes;
		const struct function *function = pool_get(&p->functions, i, &bytes);

		proto_u64(&p->message, FUNCTION_ID, i + 1);
		proto_u64(&p->message, FUNCTION_NAME, function->name);
		proto_u64(&p->message, FUNCTION_SYSTEM_NAME, function->raw);
		proto_u64(&p->message, FUNCTION_FILE, function->file);
		put_message(p, PROFILE_FUNCTION);
	}
}

/* Writes the strings last, because other fields add strings. */
static void put_strings(struct profile *p)
{
	for (uint32_t i = 0; i < p->view->labels.texts.count; i++) {
		const char *text = labels_get(&p->view->labels, i);

		proto_reset(&p->part);
		proto_bytes(&p->part, PROFILE_STRING, text, strlen(text));
		proto_gzip_put(&p->gzip, p->part.data, p->part.bytes);
	}
}

/* Writes time, length, period and the stalled resource. */
static int put_session(struct profile *p)
{
	const struct store *s = &p->view->input->store;
	_cleanup_free_ char *title = view_title(p->view);
	uint64_t time_ns = 0, hz = 0;
	uint32_t comment = 0;
	int r;

	for (uint32_t i = 0; i < s->ids.count; i++) {
		if (!s->sessions[i].files)
			continue;
		time_ns = time_ns ? MIN(time_ns, s->sessions[i].time_ns) : s->sessions[i].time_ns;
		hz = MAX(hz, s->sessions[i].hz);
	}
	r = title ? number_string(p, title, &comment) : -ENOMEM;
	if (r < 0)
		return r;
	put_number(p, PROFILE_TIME, time_ns);
	put_number(
		p, PROFILE_DURATION,
		(uint64_t)MIN(view_seconds(p->view, VIEW_ALL, 0) * (double)NSEC_PER_SEC, 0x1p62));
	put_number(p, PROFILE_PERIOD, hz ? NSEC_PER_SEC / hz : 0);
	put_number(p, PROFILE_COMMENT, comment);
	return 0;
}

/* Returns the meaning of the selected stacks' nanoseconds. */
static const char *type_of_time(const struct select *select)
{
	const char *signal = select->signal ? select->signal : "";

	if (select->wall || !strcmp(signal, "oncpu"))
		return "cpu";
	return !strcmp(signal, "offcpu") ? "wait" : "time";
}

/* CPU time and waiting time are two types, so that a reader decides whether to add them up. */
static int put_types(struct profile *p)
{
	const char *type = type_of_time(&p->view->input->select);
	int r = put_type(p, PROFILE_SAMPLE_TYPE, "samples", "count");

	if (r == 0)
		r = put_type(p, PROFILE_SAMPLE_TYPE, type, "nanoseconds");
	if (r == 0 && p->view->wall)
		r = put_type(p, PROFILE_SAMPLE_TYPE, "wait", "nanoseconds");
	return r < 0 ? r : put_type(p, PROFILE_PERIOD_TYPE, type, "nanoseconds");
}

static int write_all(struct profile *p)
{
	struct store *s = &p->view->input->store;
	struct store_frame program;
	uint32_t number;
	int r = program_find(s, &program);

	/* Readers take the first mapping for the main binary. */
	if (r == 0 && program.module != STORE_NONE)
		r = find_mapping(p, &program, &number);
	for (uint32_t i = 0; r == 0 && i < s->frames.count; i++)
		r = add_location(p, i);
	place_mappings(p);
	if (r == 0)
		r = put_types(p);
	for (uint32_t i = 0; r == 0 && i < s->keys.count; i++)
		r = put_sample(p, i);
	put_mappings(p);
	put_locations(p);
	put_functions(p);
	if (r == 0)
		r = put_session(p);
	put_strings(p);
	return r < 0 ? r : MIN(p->message.error, p->part.error);
}

static void profile_done(struct profile *p)
{
	pool_done(&p->mappings);
	pool_done(&p->functions);
	pool_done(&p->locations);
	proto_done(&p->message);
	proto_done(&p->part);
	free(p->extents);
	free(p->of_frame);
}

int pprof_write(struct view *view, FILE *out)
{
	_cleanup_(profile_done) struct profile p = { .view = view };
	struct pool_budget *budget = &view->input->store.budget;
	uint32_t empty;
	int r, end;

	pool_init(&p.mappings, budget);
	pool_init(&p.functions, budget);
	pool_init(&p.locations, budget);
	/* String 0 is the empty one: it must be the first. */
	labels_done(&view->labels);
	labels_init(&view->labels, &view->input->store, false);
	r = number_string(&p, "", &empty);
	if (r < 0)
		return r;
	r = proto_gzip_init(&p.gzip, out);
	if (r < 0)
		return r;
	r = write_all(&p);
	end = proto_gzip_done(&p.gzip);
	return r < 0 ? r : end;
}

static int print_profile(const struct options *options, struct view *view)
{
	return pprof_write(view, options->out);
}

int pprof_call(const struct options *options, const char *const *arguments)
{
	_cleanup_(input_done) struct input input = { 0 };
	int r;

	if (isatty(fileno(options->out))) {
		fprintf(options->err, "trocar: pprof writes a gzipped file: send it to one\n");
		return COMMAND_USAGE;
	}
	r = input_read_stacks(options, arguments, false, &input);
	return r ? r : view_print(options, &input, VIEW_NS, print_profile);
}
