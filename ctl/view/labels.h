/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * labels.h: what frames and everything else are called in pictures: one tame text for each.
 * Functions of one name in two files are two labels of the same text, unless they are joined.
 */
#ifndef TROCAR_CTL_VIEW_LABELS_H
#define TROCAR_CTL_VIEW_LABELS_H

#include "ctl/events/store.h"

struct labels {
	const struct store *store; /* borrowed */
	struct pool texts;	   /* shown as they are: tame, UTF-8; behind the NUL a module */
	uint32_t *of_frame;	   /* label + 1; 0: not made yet */
	uint32_t space;
	bool offsets; /* frames without a name are distinguished by their place in the file */
	bool joined;  /* functions of one name are one label, whatever file they are in */
};

void labels_init(struct labels *l, struct store *store, bool offsets);
void labels_done(struct labels *l);

/*
 * The label of a frame: its function, or "[libc.so.6]" when it has none ("[libc.so.6+0x2724a]" with
 * offsets). 0, -ENOMEM, -ENOSPC: as of all below.
 */
int labels_frame(struct labels *l, uint32_t frame, uint32_t *ret_label);

/* The label of a text of the store; "-" for none. */
int labels_text(struct labels *l, uint32_t text, uint32_t *ret_label);

/* The label that these characters are. */
int labels_plain(struct labels *l, const char *text, uint32_t *ret_label);

/* A label's characters; until the next label is made. */
const char *labels_get(const struct labels *l, uint32_t label);

/* The last part of the path of its file, for a label of a frame with a file; else NULL. As above.
 */
const char *labels_module(const struct labels *l, uint32_t label);

/* The last part of a path. */
const char *labels_base(const char *path);

#endif
