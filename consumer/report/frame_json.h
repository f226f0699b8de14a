/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frame_json.h: the JSON text of a stack's frames. The stacks of a session have most of their
 * frames in common, so each is named and rendered once and its text copied from then on. For one
 * session: the names it holds live until the next symbols_trim. Symbolizer thread only.
 */
#ifndef TROCAR_CONSUMER_REPORT_FRAME_JSON_H
#define TROCAR_CONSUMER_REPORT_FRAME_JSON_H

#include <stddef.h>

#include "consumer/report/frame_name.h"
#include "shared/json/jsonw.h"

/* Frames kept at once, a power of 2, and the bytes of all their texts. */
#define RENDERING_FRAMES     4096u
#define RENDERING_TEXT_BYTES (1u << 20)

/* Longest function name, path and such: a line must hold at least one frame. */
#define RENDERING_NAME_BYTES 512

struct rendering {
	/* The last stack's. Frame i's text ends at ends[i] and begins behind the comma before. */
	struct jsonw frames; /* "[", then all of them with commas between */
	size_t ends[STACK_SAMPLE_FRAMES_MAX];
	struct named_frame named[STACK_SAMPLE_FRAMES_MAX];

	struct symbols *symbols;
	struct frame_json_known *known; /* RENDERING_FRAMES places */
	char *text;
	size_t text_bytes;
};

/* 0 or -ENOMEM; release with frame_json_done, which an empty (zeroed) one suffers too. */
int frame_json_init(struct rendering *r, struct symbols *symbols);
void frame_json_done(struct rendering *r);

/* Names and renders the frames of `stack`, leaf first; how many, 0 when there is no memory. */
size_t frame_json_stack(struct rendering *r, const struct stack *stack);

/* A name from outside, cut to RENDERING_NAME_BYTES; NULL as null. */
void frame_json_text(struct jsonw *w, const char *key, const char *text);

#endif
