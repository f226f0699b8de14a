/* SPDX-License-Identifier: BSD-2-Clause */
/* names.h: what frames and everything else are called in pictures: one tame text for each. */
#ifndef TROCAR_CTL_VIEW_NAMES_H
#define TROCAR_CTL_VIEW_NAMES_H

#include "ctl/events/store.h"

struct names {
	const struct store *store; /* borrowed */
	struct pool texts;	   /* shown as they are: tame, UTF-8 */
	uint32_t *of_frame;	   /* name + 1; 0: not made yet */
	uint32_t space;
	bool offsets; /* frames without a name are told apart by their place in the file */
};

void names_init(struct names *n, struct store *store, bool offsets);
void names_done(struct names *n);

/*
 * The name of a frame: its function, or "[libc.so.6]" when it has none ("[libc.so.6+0x2724a]" with
 * offsets). 0, -ENOMEM, -ENOSPC: as of all below.
 */
int names_frame(struct names *n, uint32_t frame, uint32_t *ret_name);

/* The name of a text of the store; "-" for none. */
int names_text(struct names *n, uint32_t text, uint32_t *ret_name);

/* The name that these characters are. */
int names_plain(struct names *n, const char *text, uint32_t *ret_name);

/* A name's characters; until the next name is made. */
const char *names_get(const struct names *n, uint32_t name);

/* The last part of a path. */
const char *names_base(const char *path);

#endif
