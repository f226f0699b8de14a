/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/naming/frame_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/naming/frame_proof.h"
#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

/* Bytes for all frames of one stack: far more than STACK_SAMPLE_FRAMES_MAX of the longest names. */
#define FRAMES_BYTES (2u << 20)

/*
 * A cache entry for a rendered frame. Each frame has one place in the cache; another frame with the
 * same place replaces it. When the texts have no space for one more, the whole cache is emptied.
 */
struct frame_json_known {
	struct frame frame;
	uint64_t start_ns; /* of the process; 0: its name is the same in all processes */
	uint32_t tgid;
	uint32_t text, bytes; /* text: offset in rendering.text; bytes 0: a free place */
	bool caller, leaf, nameless, interpreter;
	struct named_frame named;
};

int frame_json_init(struct frame_json *r, struct symbols *symbols)
{
	memset(r, 0, sizeof(*r));
	r->symbols = symbols;
	code_files_init(&r->code, symbols);
	jsonw_init(&r->frames, FRAMES_BYTES);
	/* calloc: pages that a session never touches cost no resident memory. */
	r->known = calloc(RENDERING_FRAMES, sizeof(*r->known));
	r->text = malloc(RENDERING_TEXT_BYTES);
	if (r->known && r->text)
		return 0;
	frame_json_done(r);
	return -ENOMEM;
}

void frame_json_done(struct frame_json *r)
{
	jsonw_done(&r->frames);
	code_files_done(&r->code);
	free(r->known);
	free(r->text);
	r->known = NULL;
	r->text = NULL;
}

void frame_json_text(struct jsonw *w, const char *key, const char *text)
{
	if (text)
		jsonw_string_n(w, key, text, strnlen(text, RENDERING_NAME_BYTES));
	else
		jsonw_null(w, key);
}

/* Writes the function's name, or the reason for a missing name. */
static void write_name(struct jsonw *w, const struct named_frame *f, bool nameless)
{
	frame_json_text(w, "fn", nameless ? NULL : f->fn);
	if (f->raw && !nameless)
		frame_json_text(w, "raw", f->raw);
	if (!f->fn)
		jsonw_string(w, "why", f->reason ? f->reason : "unknown");
	else if (nameless)
		jsonw_string(w, "why", "line_bytes");
}

static void write_frame(struct jsonw *w, const struct named_frame *f, bool nameless)
{
	jsonw_object(w, NULL);
	write_name(w, f, nameless);
	frame_json_text(w, "module", f->module);
	if (f->line)
		jsonw_u64(w, "line", (uint64_t)f->line);
	if (f->build_id_bytes)
		jsonw_hex(w, "build_id", f->build_id, f->build_id_bytes);
	if (f->has_offset)
		jsonw_u64(w, "offset", f->offset);
	if (f->exact)
		jsonw_bool(w, "exact", true);
	if (f->interpreter)
		jsonw_bool(w, "interpreter", true);
	jsonw_string(w, "kind", f->kind);
	jsonw_object_end(w);
}

/*
 * A name depends on these fields only (frame_name_frame): a leaf's address is the instruction
 * itself, a caller's a return address.
 */
static struct frame_json_known key_of(const struct frame_json *r, const struct stack *stack,
				      size_t i)
{
	struct frame_json_known key = { .frame = stack->frames[i],
					.nameless = r->nameless,
					.caller = frame_name_is_caller(stack, i),
					.leaf = i == stack->kernel_frames };

	key.interpreter = key.frame.module && key.frame.module->interprets;
	if (key.frame.module && key.frame.module->anonymous) {
		key.tgid = stack->tgid;
		key.start_ns = stack->start_ns;
	}
	return key;
}

static bool same_frame(const struct frame_json_known *k, const struct frame_json_known *key)
{
	return k->bytes && k->frame.module == key->frame.module &&
	       k->frame.offset == key->frame.offset && k->caller == key->caller &&
	       k->leaf == key->leaf && k->nameless == key->nameless &&
	       k->interpreter == key->interpreter && k->tgid == key->tgid &&
	       k->start_ns == key->start_ns;
}

static struct frame_json_known *place_of(const struct frame_json *r,
					 const struct frame_json_known *key)
{
	uint64_t hash = ((uint64_t)(uintptr_t)key->frame.module ^
			 (key->frame.offset * 2 + key->caller) ^ (uint64_t)key->tgid << 20) *
			0x9e3779b97f4a7c15ULL;

	return &r->known[(hash >> 40) % RENDERING_FRAMES];
}

/* Caches a text that was just rendered. */
static void keep_text(struct frame_json *r, struct frame_json_known *k,
		      struct frame_json_known fresh, const char *text)
{
	if (fresh.bytes > RENDERING_TEXT_BYTES - r->text_bytes) {
		memset(r->known, 0, RENDERING_FRAMES * sizeof(*r->known));
		r->text_bytes = 0;
	}
	fresh.text = (uint32_t)r->text_bytes;
	memcpy(r->text + r->text_bytes, text, fresh.bytes);
	r->text_bytes += fresh.bytes;
	*k = fresh;
}

static void render_frame(struct frame_json *r, const struct stack *stack, size_t i)
{
	struct frame_json_known fresh = key_of(r, stack, i), *k = place_of(r, &fresh);
	size_t start = r->frames.bytes + r->frames.comma;

	if (same_frame(k, &fresh)) {
		jsonw_raw(&r->frames, NULL, r->text + k->text, k->bytes);
		r->named[i] = k->named;
		return;
	}
	frame_name_frame(r->symbols, stack, i, &fresh.named);
	write_frame(&r->frames, &fresh.named, r->nameless);
	r->named[i] = fresh.named;
	if (jsonw_end(&r->frames) < 0)
		return;
	fresh.bytes = (uint32_t)(r->frames.bytes - start);
	keep_text(r, k, fresh, r->frames.data + start);
}

size_t frame_json_stack(struct frame_json *r, const struct stack *stack)
{
	size_t n = MIN((size_t)stack->kernel_frames + stack->user_frames,
		       (size_t)STACK_SAMPLE_FRAMES_MAX);

	jsonw_reset(&r->frames);
	jsonw_array(&r->frames, NULL);
	for (size_t i = 0; i < n; i++) {
		render_frame(r, stack, i);
		r->ends[i] = r->frames.bytes;
	}
	frame_proof_judge(&r->code, stack, r->named, n);
	return jsonw_end(&r->frames) < 0 ? 0 : n;
}
