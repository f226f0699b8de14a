/* SPDX-License-Identifier: BSD-2-Clause */
/* options.h: parses the command line of `trocar`; the commands interpret the values. */
#ifndef TROCAR_CTL_CLI_OPTIONS_H
#define TROCAR_CTL_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "shared/tools/option_table.h"

#define OPTIONS_SOCKET	 "/run/trocar/control.sock" /* the default; see also $TROCAR_SOCKET */
#define OPTIONS_DIRS_MAX 16
#define OPTIONS_BY	 "comm"	 /* the default of --by */
#define OPTIONS_PID_MAX	 4194304 /* PID_MAX_LIMIT of include/linux/threads.h */

/* The options of `trocar`; a command selects its options by these. */
enum option {
	OPTION_JSON,
	OPTION_SOCKET,
	OPTION_HELP,
	OPTION_VERSION,
	OPTION_RULE,
	OPTION_CGROUP,
	OPTION_PID,
	OPTION_DURING_MS,
	OPTION_REASON,
	OPTION_WAIT,
	OPTION_SESSION,
	OPTION_SIGNAL,
	OPTION_PHASE,
	OPTION_COMM,
	OPTION_SINCE,
	OPTION_UNTIL,
	OPTION_MEMORY_MIB,
	OPTION_UNIT,
	OPTION_COUNT,
	OPTION_BY,
	OPTION_OFFSETS,
	OPTION_ANNOTATE,
	OPTION_SVG,
	OPTION_TITLE,
	OPTION_TOP,
	OPTION_DEBUG_DIR,
	OPTION_DEBUGINFOD_CACHE,
	OPTION_SOURCE,
	OPTION_MAX_LINE_BYTES,
	OPTION_SIGNALS,
	OPTION_ALL,
	OPTION_HOST,
	OPTION_OFFLINE,
	OPTION_STRICT,
	OPTION_REPORT,
	OPTION_FULL,
	OPTION_PPROF,
	OPTION_JSONL,
	OPTION_INVERTED,
	OPTION_LAST,
	OPTION_JOURNAL,
	OPTION_NATIVE,
};

#define OPTION_BIT(option) (1ULL << (option))

/* Options of every command, and of every command that calls the agent. */
#define OPTIONS_HELP   (OPTION_BIT(OPTION_HELP) | OPTION_BIT(OPTION_VERSION))
#define OPTIONS_COMMON (OPTION_BIT(OPTION_JSON) | OPTION_BIT(OPTION_SOCKET) | OPTIONS_HELP)
#define OPTIONS_ALL    UINT64_MAX

/* Options that select lines of an event file. */
#define OPTIONS_SELECT                                                                      \
	(OPTION_BIT(OPTION_SESSION) | OPTION_BIT(OPTION_RULE) | OPTION_BIT(OPTION_CGROUP) | \
	 OPTION_BIT(OPTION_SIGNAL) | OPTION_BIT(OPTION_PHASE) | OPTION_BIT(OPTION_PID) |    \
	 OPTION_BIT(OPTION_COMM) | OPTION_BIT(OPTION_SINCE) | OPTION_BIT(OPTION_UNTIL) |    \
	 OPTION_BIT(OPTION_MEMORY_MIB) | OPTION_BIT(OPTION_ALL) | OPTION_BIT(OPTION_HOST) | \
	 OPTION_BIT(OPTION_NATIVE))

/*
 * Options that select an input instead of a file: the last session, from the agent, or the journal.
 */
#define OPTIONS_PLACE \
	(OPTION_BIT(OPTION_LAST) | OPTION_BIT(OPTION_SOCKET) | OPTION_BIT(OPTION_JOURNAL))

/* Texts are borrowed; NULL: not given. */
struct options {
	bool json, help, version, offsets, annotate, svg, source, wait, all, offline, strict;
	bool report, full, pprof, jsonl, inverted, last, journal, native;
	const char *socket, *rule, *cgroup, *session, *signal, *phase, *comm, *since, *until;
	const char *unit, *count, *debuginfod_cache, *by, *title, *reason, *signals, *host;
	uint64_t pid, during_ms; /* 0: not given */
	uint64_t memory_mib, top, max_line_bytes;
	struct option_list dirs; /* each --debug-dir */
	struct option_words words;
	FILE *out, *err;
};

/*
 * Parses the arguments after the program's name. Accepts the options in `bits`; options and words
 * may be in any order; "--" ends the options. 0; -EINVAL: one line with the fault was printed on
 * `err`, after the word `command` if that is not NULL.
 */
int options_parse(const char *command, uint64_t bits, int argc, char *const argv[], FILE *out,
		  FILE *err, struct options *ret_options);

/* Returns all options, for callers that list them. */
const struct option_table *options_table(void);

/* Prints the options of the set `bits`, one per line. */
void options_help(uint64_t bits, FILE *out);

#endif
