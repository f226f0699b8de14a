/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/symbolize/unnamed.h"

static const struct {
	const char *word, *help;
} rows[UNNAMED_COUNT_] = {
#define UNNAMED(id, word, help) [UNNAMED_##id] = { word, help },
#include "ctl/symbolize/unnamed.def"
#undef UNNAMED
};

const char *unnamed_word(enum unnamed unnamed)
{
	return rows[unnamed].word;
}

const char *unnamed_help(enum unnamed unnamed)
{
	return rows[unnamed].help;
}
