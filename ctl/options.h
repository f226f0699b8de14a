/* SPDX-License-Identifier: BSD-2-Clause */
/* options.h: the command line of `trocar`, without what its words mean. */
#ifndef TROCAR_CTL_OPTIONS_H
#define TROCAR_CTL_OPTIONS_H

#include <stdio.h>

#define OPTIONS_WORDS_MAX 4
#define OPTIONS_DIRS_MAX  16

enum option {
	OPTION_JSON,
	OPTION_SOCKET,
	OPTION_HELP,
	OPTION_VERSION,
	OPTION_RULE,
	OPTION_CGROUP,
	OPTION_PID,
	OPTION_DURING_MS,
	OPTION_SESSION,
	OPTION_SIGNAL,
	OPTION_PHASE,
	OPTION_COMM,
	OPTION_SINCE,
	OPTION_UNTIL,
	OPTION_MEMORY_MIB,
	OPTION_UNIT,
	OPTION_BY,
	OPTION_OFFSETS,
	OPTION_ANNOTATE,
	OPTION_SVG,
	OPTION_TITLE,
	OPTION_TOP,
	OPTION_DEBUG_DIR,
	OPTION_SOURCE,
	OPTION_MAX_LINE_BYTES,
	OPTION_COUNT_
};

#define OPTION_BIT(option) (1u << (option))

/* What every command takes, and what those take that ask the agent. */
#define OPTIONS_HELP   (OPTION_BIT(OPTION_HELP) | OPTION_BIT(OPTION_VERSION))
#define OPTIONS_COMMON (OPTION_BIT(OPTION_JSON) | OPTION_BIT(OPTION_SOCKET) | OPTIONS_HELP)

/* What selects lines of an event file. */
#define OPTIONS_SELECT                                                                      \
	(OPTION_BIT(OPTION_SESSION) | OPTION_BIT(OPTION_RULE) | OPTION_BIT(OPTION_CGROUP) | \
	 OPTION_BIT(OPTION_SIGNAL) | OPTION_BIT(OPTION_PHASE) | OPTION_BIT(OPTION_PID) |    \
	 OPTION_BIT(OPTION_COMM) | OPTION_BIT(OPTION_SINCE) | OPTION_BIT(OPTION_UNTIL) |    \
	 OPTION_BIT(OPTION_MEMORY_MIB))

struct options {
	const char *values[OPTION_COUNT_]; /* borrowed; NULL: not given; "" for a flag */
	const char *words[OPTIONS_WORDS_MAX];
	unsigned int n_words;
	const char *dirs[OPTIONS_DIRS_MAX]; /* each --debug-dir */
	unsigned int n_dirs;
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
