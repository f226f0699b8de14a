/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/symbolize/namer.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define NO_TEXT UINT32_MAX

/* A build, and the process that reads its file. */
struct namer_build {
	struct resolver resolver;
	uint64_t used;
	enum unnamed unnamed; /* why there is none */
	uint32_t module;      /* + 1: the last one that was looked at */
	bool useless;	      /* its file broke its resolver */
};

/* What was answered; texts, or NO_TEXT. */
struct namer_place {
	uint32_t name, source;
	enum unnamed unnamed;
};

/* Without padding, as all keys of pools. */
struct place_key {
	uint64_t offset;
	uint32_t build, zero;
};

static const struct {
	const char *word, *help;
} rows[UNNAMED_COUNT_] = {
#define UNNAMED(id, word, help) [UNNAMED_##id] = { word, help },
#include "ctl/symbolize/unnamed.def"
#undef UNNAMED
};

const char *namer_word(enum unnamed unnamed)
{
	return rows[unnamed].word;
}

const char *namer_help(enum unnamed unnamed)
{
	return rows[unnamed].help;
}

int namer_init(struct namer *n, bool lines)
{
	*n = (struct namer){ .lines = lines, .data = malloc(ANSWER_BYTES) };
	n->budget.max_bytes = NAMER_MAX_BYTES;
	debug_files_init(&n->files);
	pool_init(&n->builds, &n->budget);
	pool_init(&n->modules, &n->budget);
	pool_init(&n->places, &n->budget);
	pool_init(&n->texts, &n->budget);
	return n->data ? 0 : -ENOMEM;
}

/* Forgets all that was learnt; the resolvers go too, since they belong to what is forgotten. */
static void forget_all(struct namer *n)
{
	for (uint32_t i = 0; i < n->builds.count && i < n->known_space; i++)
		resolver_stop(&n->known[i].resolver, false);
	pool_done(&n->builds);
	pool_done(&n->modules);
	pool_done(&n->places);
	pool_done(&n->texts);
	free(n->known);
	free(n->answers);
	n->known = NULL;
	n->answers = NULL;
	n->known_space = n->answers_space = n->running = 0;
	n->budget.used_bytes = 0;
}

void namer_done(struct namer *n)
{
	forget_all(n);
	debug_files_done(&n->files);
	free(n->data);
	n->data = NULL;
}

static void stop_resolver(struct namer *n, struct namer_build *b, bool stuck)
{
	n->running -= b->resolver.pid != 0;
	resolver_stop(&b->resolver, stuck);
}

/* Ends the resolver that was asked longest ago, when there are enough. */
static void make_room(struct namer *n)
{
	struct namer_build *oldest = NULL;

	for (uint32_t i = 0; n->running >= NAMER_RESOLVERS && i < n->builds.count; i++)
		if (n->known[i].resolver.pid && (!oldest || n->known[i].used < oldest->used))
			oldest = &n->known[i];
	if (oldest)
		stop_resolver(n, oldest, false);
}

/* The characters of a path in `path`; "" for what is none or too long. */
static void take_path(const struct json_text *module, char path[DEBUG_FILES_PATH])
{
	size_t bytes = 0;

	if (module->data && module->bytes < DEBUG_FILES_PATH)
		bytes = json_reader_decode(module, path);
	path[bytes] = '\0';
	if (strlen(path) != bytes || path[0] != '/')
		path[0] = '\0';
}

static enum unnamed reason_of(int error)
{
	if (error == -ESTALE)
		return UNNAMED_OTHER_BUILD;
	return error == -EACCES ? UNNAMED_NO_PERMISSION : UNNAMED_NO_FILE;
}

/* Sees to it that a resolver of the build runs; else b->unnamed says why not. 0 or -ENOMEM. */
static int start_resolver(struct namer *n, struct namer_build *b, const struct json_text *build_id,
			  const struct json_text *module)
{
	struct debug_files_pair pair = { .code = -1, .debug = -1 };
	char path[DEBUG_FILES_PATH];
	uint32_t number;
	int r;

	if (b->resolver.pid || b->useless)
		return 0;
	take_path(module, path);
	r = pool_put(&n->modules, path, strlen(path), &number);
	if (r < 0 || (b->unnamed && b->module == number + 1))
		return r;
	b->module = number + 1;
	r = debug_files_open(&n->files, build_id->data, build_id->bytes, path, &pair);
	b->unnamed = r < 0 ? reason_of(r) : UNNAMED_NOT;
	if (r < 0)
		return 0;
	make_room(n);
	r = resolver_start(&pair, n->lines, &b->resolver);
	n->running += r == 0;
	cleanup_close(&pair.code);
	cleanup_close(&pair.debug);
	return r == -ENOMEM || r == -EAGAIN ? -ENOMEM : r;
}

static int keep_text(struct namer *n, const struct jsonw *w, uint32_t *ret_text)
{
	if (jsonw_end(w) < 0)
		return -ENOMEM;
	/* Without the braces: members, to stand among others. */
	return pool_put(&n->texts, w->data + 1, w->bytes - 2, ret_text);
}

static void write_position(struct jsonw *w, const struct answer_place *p)
{
	if (!p->file)
		return;
	jsonw_string(w, "file", p->file);
	jsonw_u64(w, "line", p->line);
}

/* As many of the inlined functions as fit. */
static void write_inlined(struct jsonw *w, const struct answer *answer)
{
	unsigned int i;

	jsonw_array(w, "inlined");
	for (i = 1; i < answer->n && w->bytes < NAMER_SOURCE_BYTES; i++) {
		struct jsonw_mark mark = jsonw_mark(w);

		jsonw_object(w, NULL);
		jsonw_string(w, "fn", answer->places[i].fn);
		write_position(w, &answer->places[i]);
		jsonw_object_end(w);
		if (w->bytes <= NAMER_SOURCE_BYTES)
			continue;
		jsonw_rewind(w, mark);
		break;
	}
	jsonw_array_end(w);
	if (i < answer->n)
		jsonw_u64(w, "inlined_omitted", answer->n - i);
}

static int keep_source(struct namer *n, const struct answer *answer, uint32_t *ret_text)
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
	return keep_text(n, &w, ret_text);
}

static int keep_name(struct namer *n, const struct answer *answer, uint32_t *ret_text)
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
	return keep_text(n, &w, ret_text);
}

/* Asks the build's resolver, and keeps what it says. */
static int ask_resolver(struct namer *n, struct namer_build *b, uint64_t offset,
			struct namer_place *place)
{
	struct answer answer;
	int r;

	if (!b->resolver.pid) {
		place->unnamed = b->unnamed;
		return 0;
	}
	b->used = ++n->asked;
	r = resolver_ask(&b->resolver, offset, n->data, &answer);
	if (r < 0) {
		stop_resolver(n, b, r == -ETIMEDOUT);
		b->useless = true;
		b->unnamed = place->unnamed = UNNAMED_GAVE_UP;
		n->gave_up++;
		return 0;
	}
	place->unnamed = answer.unnamed;
	r = keep_name(n, &answer, &place->name);
	return r < 0 ? r : keep_source(n, &answer, &place->source);
}

static void give_frame(const struct namer *n, const struct namer_place *place,
		       struct namer_frame *ret_frame)
{
	struct namer_frame frame = { .unnamed = place->unnamed };

	if (place->name != NO_TEXT)
		frame.name = pool_get(&n->texts, place->name, &frame.name_bytes);
	if (place->source != NO_TEXT)
		frame.source = pool_get(&n->texts, place->source, &frame.source_bytes);
	*ret_frame = frame;
}

/* The build's number, with its row. */
static int find_build(struct namer *n, const struct json_text *build_id, uint32_t *ret_build)
{
	int r = pool_put(&n->builds, build_id->data, build_id->bytes, ret_build);

	if (r < 0)
		return r;
	return pool_grow(&n->budget, (void **)&n->known, &n->known_space, *ret_build + 1,
			 sizeof(*n->known));
}

static int find_place(struct namer *n, const struct json_text *build_id,
		      const struct json_text *module, uint64_t offset,
		      struct namer_frame *ret_frame)
{
	struct namer_place place = { .name = NO_TEXT, .source = NO_TEXT };
	struct place_key key = { .offset = offset };
	struct namer_build *b;
	uint32_t number;
	int r;

	r = find_build(n, build_id, &key.build);
	if (r < 0)
		return r;
	if (pool_find(&n->places, &key, sizeof(key), &number) == 0) {
		give_frame(n, &n->answers[number], ret_frame);
		return 0;
	}
	b = &n->known[key.build];
	r = start_resolver(n, b, build_id, module);
	if (r == 0)
		r = ask_resolver(n, b, offset, &place);
	/* What could not be asked may be once another line names another path. */
	if (r == 0 && (b->resolver.pid || b->useless)) {
		r = pool_put(&n->places, &key, sizeof(key), &number);
		if (r == 0)
			r = pool_grow(&n->budget, (void **)&n->answers, &n->answers_space,
				      number + 1, sizeof(*n->answers));
		if (r == 0)
			n->answers[number] = place;
	}
	if (r == 0)
		give_frame(n, &place, ret_frame);
	return r;
}

int namer_find(struct namer *n, const struct json_text *build_id, const struct json_text *module,
	       uint64_t offset, struct namer_frame *ret_frame)
{
	int r;

	if (!build_id->data || build_id->escaped || !build_id->bytes) {
		*ret_frame = (struct namer_frame){ .unnamed = UNNAMED_NO_BUILD_ID };
		return 0;
	}
	r = find_place(n, build_id, module, offset, ret_frame);
	if (r != -ENOSPC)
		return r;
	forget_all(n);
	return find_place(n, build_id, module, offset, ret_frame);
}
