/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/symbolize/offline_symbols.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "shared/elf/build_id.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"

#define NO_TEXT			  UINT32_MAX
#define OFFLINE_SYMBOLS_ID_DIGITS (2 * BUILD_ID_BYTES_MAX)

/* A build, and the process that reads its file. */
struct offline_build {
	struct resolver resolver;
	uint64_t used;
	enum unnamed unnamed; /* why there is no resolver */
	uint32_t module;      /* + 1: the last module that was tried */
	bool useless;	      /* its file made its resolver fail */
};

/* The answer for a place: texts, or NO_TEXT. */
struct offline_place {
	uint32_t name, source;
	enum unnamed unnamed;
};

/* Without padding, as all keys of pools. */
struct place_key {
	struct answer_question place;
	uint64_t build;
};

int offline_symbols_init(struct offline_symbols *s, bool lines)
{
	*s = (struct offline_symbols){ .lines = lines, .data = malloc(ANSWER_BYTES) };
	s->budget.max_bytes = OFFLINE_SYMBOLS_MAX_BYTES;
	debug_files_init(&s->files);
	pool_init(&s->builds, &s->budget);
	pool_init(&s->modules, &s->budget);
	pool_init(&s->places, &s->budget);
	pool_init(&s->texts, &s->budget);
	return s->data ? 0 : -ENOMEM;
}

/* Forgets all answers, and stops the resolvers, because they belong to the forgotten builds. */
static void forget_all(struct offline_symbols *s)
{
	for (uint32_t i = 0; i < s->builds.count && i < s->known_space; i++)
		resolver_stop(&s->known[i].resolver, false);
	pool_done(&s->builds);
	pool_done(&s->modules);
	pool_done(&s->places);
	pool_done(&s->texts);
	free(s->known);
	free(s->module_builds);
	free(s->answers);
	s->known = NULL;
	s->module_builds = NULL;
	s->answers = NULL;
	s->known_space = s->modules_space = s->answers_space = s->running = 0;
	s->budget.used_bytes = 0;
}

void offline_symbols_done(struct offline_symbols *s)
{
	forget_all(s);
	debug_files_done(&s->files);
	free(s->data);
	s->data = NULL;
}

static void stop_resolver(struct offline_symbols *s, struct offline_build *b, bool stuck)
{
	s->running -= b->resolver.pid != 0;
	resolver_stop(&b->resolver, stuck);
}

/* Stops the least recently used resolver if the limit is reached. */
static void make_room(struct offline_symbols *s)
{
	struct offline_build *oldest = NULL;

	for (uint32_t i = 0; s->running >= OFFLINE_SYMBOLS_RESOLVERS && i < s->builds.count; i++)
		if (s->known[i].resolver.pid && (!oldest || s->known[i].used < oldest->used))
			oldest = &s->known[i];
	if (oldest)
		stop_resolver(s, oldest, false);
}

/* Writes the characters of a path to `path`; "" for a text that is missing or too long. */
static void take_path(const struct json_text *module, char path[DEBUG_FILES_PATH])
{
	size_t bytes = 0;

	if (module->data && module->bytes < DEBUG_FILES_PATH)
		bytes = json_reader_decode(module, path);
	path[bytes] = '\0';
	if (strlen(path) != bytes || path[0] != '/')
		path[0] = '\0';
}

static enum unnamed choose_reason(int error)
{
	if (error == -ESTALE)
		return UNNAMED_OTHER_BUILD;
	if (error == -ENOTUNIQ)
		return UNNAMED_SHARED_ID;
	return error == -EACCES ? UNNAMED_NO_PERMISSION : UNNAMED_NO_FILE;
}

/*
 * Makes sure that a resolver of the build runs; else b->unnamed is the reason. `number` is that of
 * the module. 0 or -ENOMEM.
 */
static int start_resolver(struct offline_symbols *s, struct offline_build *b,
			  const struct json_text *build_id, const struct json_text *module,
			  uint32_t number)
{
	struct debug_files_pair pair = { .code = -1, .debug = -1 };
	char path[DEBUG_FILES_PATH];
	int r;

	if (b->resolver.pid || b->useless || (b->unnamed && b->module == number + 1))
		return 0;
	take_path(module, path);
	b->module = number + 1;
	r = debug_files_open(&s->files, build_id->data, build_id->bytes, path, &pair);
	b->unnamed = r < 0 ? choose_reason(r) : UNNAMED_NOT;
	if (r < 0)
		return 0;
	make_room(s);
	r = resolver_start(&pair, s->lines, &b->resolver);
	s->running += r == 0;
	cleanup_close(&pair.code);
	cleanup_close(&pair.debug);
	return r == -ENOMEM || r == -EAGAIN ? -ENOMEM : r;
}

static int keep_text(struct offline_symbols *s, const struct jsonw *w, uint32_t *ret_text)
{
	if (jsonw_end(w) < 0)
		return -ENOMEM;
	/* Stores the members without the braces, for use among other members. */
	return pool_put(&s->texts, w->data + 1, w->bytes - 2, ret_text);
}

static void write_position(struct jsonw *w, const struct answer_place *p)
{
	if (!p->file)
		return;
	jsonw_string(w, "file", p->file);
	jsonw_u64(w, "line", p->line);
}

/* Writes as many of the inlined functions as fit. */
static void write_inlined(struct jsonw *w, const struct answer *answer)
{
	unsigned int i;

	jsonw_array(w, "inlined");
	for (i = 1; i < answer->n && w->bytes < OFFLINE_SYMBOLS_SOURCE_BYTES; i++) {
		struct jsonw_mark mark = jsonw_mark(w);

		jsonw_object(w, NULL);
		jsonw_string(w, "fn", answer->places[i].fn);
		write_position(w, &answer->places[i]);
		jsonw_object_end(w);
		if (w->bytes <= OFFLINE_SYMBOLS_SOURCE_BYTES)
			continue;
		jsonw_rewind(w, mark);
		break;
	}
	jsonw_array_end(w);
	if (i < answer->n)
		jsonw_u64(w, "inlined_omitted", answer->n - i);
}

static int keep_source(struct offline_symbols *s, const struct answer *answer, uint32_t *ret_text)
{
	_cleanup_(jsonw_done) struct jsonw w = { 0 };

	if (!answer->places[0].file && answer->n == 1)
		return 0;
	jsonw_init(&w, ANSWER_BYTES * 6);
	jsonw_object(&w, NULL);
	if (answer->places[0].file) {
		jsonw_object(&w, "source");
		write_position(&w, &answer->places[0]);
		jsonw_object_end(&w);
	}
	if (answer->n > 1)
		write_inlined(&w, answer);
	jsonw_object_end(&w);
	return keep_text(s, &w, ret_text);
}

static int keep_name(struct offline_symbols *s, const struct answer *answer, uint32_t *ret_text)
{
	_cleanup_(jsonw_done) struct jsonw w = { 0 };

	if (!answer->places[0].fn)
		return 0;
	jsonw_init(&w, ANSWER_BYTES * 6);
	jsonw_object(&w, NULL);
	jsonw_string(&w, "fn", answer->places[0].fn);
	if (answer->raw)
		jsonw_string(&w, "raw", answer->raw);
	jsonw_object_end(&w);
	return keep_text(s, &w, ret_text);
}

/* Sends the question to the build's resolver, and stores the answer. */
static int ask_resolver(struct offline_symbols *s, struct offline_build *b,
			const struct answer_question *question, struct offline_place *place)
{
	struct answer answer;
	int r;

	if (!b->resolver.pid) {
		place->unnamed = b->unnamed;
		return 0;
	}
	b->used = ++s->asked;
	r = resolver_ask(&b->resolver, question, s->data, &answer);
	if (r < 0) {
		stop_resolver(s, b, r == -ETIMEDOUT);
		b->useless = true;
		b->unnamed = place->unnamed = UNNAMED_GAVE_UP;
		return 0;
	}
	place->unnamed = answer.unnamed;
	r = keep_name(s, &answer, &place->name);
	return r < 0 ? r : keep_source(s, &answer, &place->source);
}

static void give_frame(const struct offline_symbols *s, const struct offline_place *place,
		       struct offline_frame *ret_frame)
{
	struct offline_frame frame = { .unnamed = place->unnamed };

	if (place->name != NO_TEXT)
		frame.name = pool_get(&s->texts, place->name, &frame.name_bytes);
	if (place->source != NO_TEXT)
		frame.source = pool_get(&s->texts, place->source, &frame.source_bytes);
	*ret_frame = frame;
}

/* Space for the digits, a NUL and a path. */
#define KEY_BYTES (OFFLINE_SYMBOLS_ID_DIGITS + 1 + DEBUG_FILES_PATH)

/* Writes the hex digits, a NUL and `rest` to `key`. Returns the number of bytes. */
static size_t write_key(char *key, const struct json_text *build_id, const void *rest, size_t bytes)
{
	memcpy(key, build_id->data, build_id->bytes);
	key[build_id->bytes] = '\0';
	if (bytes)
		memcpy(key + build_id->bytes + 1, rest, bytes);
	return build_id->bytes + 1 + bytes;
}

/*
 * Finds or adds the build, with its row. Different files with one build-id are separate builds,
 * distinguished by the file at the module's path. An id of a few bytes was made by hand, and
 * different files may have it: for such an id each path is a build.
 */
static int add_build(struct offline_symbols *s, const struct json_text *build_id,
		     const struct json_text *module, uint32_t *ret_build)
{
	char key[KEY_BYTES], path[DEBUG_FILES_PATH];
	size_t bytes;
	int r;

	take_path(module, path);
	if (build_id->bytes < 2 * BUILD_ID_BYTES_MIN) {
		bytes = write_key(key, build_id, path, strlen(path));
	} else {
		uint64_t shape = debug_files_shape(build_id->data, build_id->bytes, path);

		bytes = write_key(key, build_id, &shape, sizeof(shape));
	}
	r = pool_put(&s->builds, key, bytes, ret_build);
	if (r < 0)
		return r;
	return pool_grow(&s->budget, (void **)&s->known, &s->known_space, *ret_build + 1,
			 sizeof(*s->known));
}

/* Finds the numbers of the module and of its build. Reads the module's file once. */
static int find_build(struct offline_symbols *s, const struct json_text *build_id,
		      const struct json_text *module, uint32_t *ret_module, uint32_t *ret_build)
{
	char key[KEY_BYTES];
	size_t path_bytes = module->data ? module->bytes : 0;
	int r;

	if (path_bytes >= DEBUG_FILES_PATH)
		path_bytes = 0;
	r = pool_put(&s->modules, key, write_key(key, build_id, module->data, path_bytes),
		     ret_module);
	if (r == 0)
		r = pool_grow(&s->budget, (void **)&s->module_builds, &s->modules_space,
			      *ret_module + 1, sizeof(*s->module_builds));
	if (r < 0)
		return r;
	if (!s->module_builds[*ret_module]) {
		r = add_build(s, build_id, module, ret_build);
		if (r < 0)
			return r;
		s->module_builds[*ret_module] = *ret_build + 1;
	}
	*ret_build = s->module_builds[*ret_module] - 1;
	return 0;
}

static int find_place(struct offline_symbols *s, const struct json_text *build_id,
		      const struct json_text *module, const struct answer_question *question,
		      struct offline_frame *ret_frame)
{
	struct offline_place place = { .name = NO_TEXT, .source = NO_TEXT };
	struct place_key key = { .place = *question };
	struct offline_build *b;
	uint32_t number, module_number, build;
	int r;

	r = find_build(s, build_id, module, &module_number, &build);
	if (r < 0)
		return r;
	key.build = build;
	if (pool_find(&s->places, &key, sizeof(key), &number) == 0) {
		give_frame(s, &s->answers[number], ret_frame);
		return 0;
	}
	b = &s->known[build];
	r = start_resolver(s, b, build_id, module, module_number);
	if (r == 0)
		r = ask_resolver(s, b, question, &place);
	/* A place without a resolver is not stored: another line may have another path. */
	if (r == 0 && (b->resolver.pid || b->useless)) {
		r = pool_put(&s->places, &key, sizeof(key), &number);
		if (r == 0)
			r = pool_grow(&s->budget, (void **)&s->answers, &s->answers_space,
				      number + 1, sizeof(*s->answers));
		if (r == 0)
			s->answers[number] = place;
	}
	if (r == 0)
		give_frame(s, &place, ret_frame);
	return r;
}

int offline_symbols_find(struct offline_symbols *s, const struct json_text *build_id,
			 const struct json_text *module, const struct answer_question *place,
			 struct offline_frame *ret_frame)
{
	int r;

	if (!build_id->data || build_id->escaped || !build_id->bytes ||
	    build_id->bytes > OFFLINE_SYMBOLS_ID_DIGITS) {
		*ret_frame = (struct offline_frame){ .unnamed = UNNAMED_NO_BUILD_ID };
		return 0;
	}
	r = find_place(s, build_id, module, place, ret_frame);
	if (r != -ENOSPC)
		return r;
	forget_all(s);
	return find_place(s, build_id, module, place, ret_frame);
}
