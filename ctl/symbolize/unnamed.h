/* SPDX-License-Identifier: BSD-2-Clause */
/* unnamed.h: why a frame has no name after `trocar symbolize`; one row each in unnamed.def. */
#ifndef TROCAR_CTL_SYMBOLIZE_UNNAMED_H
#define TROCAR_CTL_SYMBOLIZE_UNNAMED_H

enum unnamed {
	UNNAMED_NOT = 0, /* it has a name */
#define UNNAMED(id, word, help) UNNAMED_##id,
#include "ctl/symbolize/unnamed.def"
#undef UNNAMED
	UNNAMED_COUNT_
};

/* Return the word of event lines for the reason, and a sentence. */
const char *unnamed_word(enum unnamed unnamed);
const char *unnamed_help(enum unnamed unnamed);

#endif
