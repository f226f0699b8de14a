/* SPDX-License-Identifier: BSD-2-Clause */
/* options.h: the command line of trocar-loader. */
#ifndef TROCAR_LOADER_OPTIONS_H
#define TROCAR_LOADER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "shared/tools/option_table.h"

/* The verbs that take options. */
enum verb_bit {
	FOR_CHECK = 1u << 0,
	FOR_LOAD = 1u << 1,
	FOR_UNLOAD = 1u << 2,
	FOR_BROKER = 1u << 3,
};

struct options {
	uint64_t hz;
	uint64_t samples_kib, events_kib, errors_kib;
	uint64_t watches, targets, rules, threads, locks, long_waits;
	uint64_t unwind_kib, unwind_tables;
	const char *bpf_dir; /* absolute, no "//", no trailing '/', no "." or ".." */
	const char *group, *user;
	const char *always;	  /* "oncpu" or "none" */
	const char *runtimes;	  /* "on" or "off" */
	struct option_list scope; /* cgroup prefixes; none: all cgroups */
	bool replace, json, keep_mount, walk_tasks;
};

/*
 * Parses the arguments after the verb. Texts are borrowed from argv. -EINVAL: `fault` is one line
 * with the fault and the right form.
 */
int options_parse(uint32_t verb, int argc, char *const argv[], struct options *ret_options,
		  char fault[OPTION_TABLE_FAULT_BYTES]);

/* Returns whether the sampler runs from the load on, without the broker. */
bool options_always_oncpu(const struct options *o);

/* Prints the options of `verb`, one a line. */
void options_help(uint32_t verb, FILE *out);

#endif
