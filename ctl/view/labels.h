/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * labels.h: the labels of frames and other things in pictures: one tame text (text.h) each.
 * Functions of one name in two files are two labels of the same text, unless they are joined.
 */
#ifndef TROCAR_CTL_VIEW_LABELS_H
#define TROCAR_CTL_VIEW_LABELS_H

#include "ctl/events/store.h"

struct labels {
	const struct store *store; /* borrowed */
	struct pool texts;	   /* printed as they are: tame, UTF-8; after the NUL a module */
	uint32_t *of_frame;	   /* label + 1; 0: not made yet */
	uint32_t space;
	bool offsets; /* frames without a name are distinguished by their file offset */
	bool joined;  /* functions of one name are one label, in all files */
};

void labels_init(struct labels *l, struct store *store, bool offsets);
void labels_done(struct labels *l);

/*
 * Makes the label of a frame: its function, or "[libc.so.6]" without one ("[libc.so.6+0x2724a]"
 * with offsets). This and the next two functions return 0, -ENOMEM or -ENOSPC.
 */
int labels_frame(struct labels *l, uint32_t frame, uint32_t *ret_label);

/* Makes the label of a text of the store; "-" for no text. */
int labels_text(struct labels *l, uint32_t text, uint32_t *ret_label);

/* Makes the label with these characters. */
int labels_plain(struct labels *l, const char *text, uint32_t *ret_label);

/* Returns a label's characters; valid until the next label is made. */
const char *labels_get(const struct labels *l, uint32_t label);

/*
 * Returns the last component of the path of its file, for a label of a frame with a file; else
 * NULL. Valid as labels_get.
 */
const char *labels_module(const struct labels *l, uint32_t label);

/* Returns the last component of a path. */
const char *labels_base(const char *path);

#endif
