/* SPDX-License-Identifier: BSD-2-Clause */
/* options.h: the command line of `trocar`, without what its words mean. */
#ifndef TROCAR_CTL_OPTIONS_H
#define TROCAR_CTL_OPTIONS_H

#include <stdio.h>

#define OPTIONS_WORDS_MAX 4

enum option {
	OPTION_JSON,
	OPTION_SOCKET,
	OPTION_HELP,
	OPTION_VERSION,
	OPTION_RULE,
	OPTION_CGROUP,
	OPTION_PID,
	OPTION_DURING_MS,
	OPTION_COUNT_
};

#define OPTION_BIT(option) (1u << (option))

/* What every command takes. */
#define OPTIONS_COMMON                                                                   \
	(OPTION_BIT(OPTION_JSON) | OPTION_BIT(OPTION_SOCKET) | OPTION_BIT(OPTION_HELP) | \
	 OPTION_BIT(OPTION_VERSION))

struct options {
	const char *values[OPTION_COUNT_]; /* borrowed; NULL: not given; "" for a flag */
	const char *words[OPTIONS_WORDS_MAX];
	unsigned int n_words;
	unsigned int given; /* OPTION_BIT */
	FILE *out, *err;
};

/*
 * Parses argv into `ret_options`, options and words in any order, "--" ends the options. 0; -EINVAL
 * after saying on `err` in one line what was wrong.
 */
int options_parse(int argc, char *argv[], FILE *out, FILE *err, struct options *ret_options);

/* The name of an option, without the dashes. */
const char *options_name(enum option option);

/* Prints the options of the set `bits`, one per line. */
void options_help(unsigned int bits, FILE *out);

#endif
