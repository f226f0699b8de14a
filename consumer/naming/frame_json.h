/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frame_json.h: renders a stack's frames as JSON. The stacks of a session share most of their
 * frames, so each frame is named and rendered once, and its text is then copied. Create one struct
 * frame_json per session: the names it holds live until the next symbols_trim. Report thread only.
 */
#ifndef TROCAR_CONSUMER_NAMING_FRAME_JSON_H
#define TROCAR_CONSUMER_NAMING_FRAME_JSON_H

#include <stddef.h>

#include "consumer/naming/code_files.h"
#include "consumer/naming/frame_name.h"
#include "shared/json/jsonw.h"

/* Frames in the cache, a power of 2, and the bytes of all their texts. */
#define RENDERING_FRAMES     4096u
#define RENDERING_TEXT_BYTES (1u << 20)

/* Longest function name, path and so on: a line must fit at least one frame. */
#define RENDERING_NAME_BYTES 512

struct frame_json {
	/*
	 * The last rendered stack. Frame i's text ends at ends[i]; it begins after the preceding
	 * comma.
	 */
	struct jsonw frames; /* "[", then all frames with commas between */
	size_t ends[STACK_SAMPLE_FRAMES_MAX];
	struct named_frame named[STACK_SAMPLE_FRAMES_MAX];

	struct symbols *symbols;
	struct code_files code;
	struct frame_json_known *known; /* RENDERING_FRAMES slots */
	char *text;
	size_t text_bytes;
	bool nameless; /* frames are written without their names */
};

/* Returns 0 or -ENOMEM. Release with frame_json_done, which accepts a zeroed struct. */
int frame_json_init(struct frame_json *r, struct symbols *symbols);
void frame_json_done(struct frame_json *r);

/*
 * Names, judges (frame_proof.h) and renders the frames of `stack`, leaf first. Returns the number
 * of frames; 0 without memory.
 */
size_t frame_json_stack(struct frame_json *r, const struct stack *stack);

/* Writes a name that a program chose, cut to RENDERING_NAME_BYTES; NULL as null. */
void frame_json_text(struct jsonw *w, const char *key, const char *text);

#endif
