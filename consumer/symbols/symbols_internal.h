/* SPDX-License-Identifier: BSD-2-Clause */
/* symbols_internal.h: the members of struct symbols, for symbols*.c only. */
#ifndef TROCAR_CONSUMER_SYMBOLS_SYMBOLS_INTERNAL_H
#define TROCAR_CONSUMER_SYMBOLS_SYMBOLS_INTERNAL_H

#include "consumer/jit/perf_map_names.h"
#include "consumer/runtimes/code_names.h"
#include "consumer/symbols/build_ids.h"
#include "consumer/symbols/kernel_symbol_reader.h"
#include "consumer/symbols/module_file.h"
#include "consumer/symbols/modules.h"
#include "consumer/symbols/symbols.h"

struct symbols {
	struct modules modules;	    /* its lock also protects symbols and bytes of stats */
	struct symbols_stats stats; /* the other members of stats are atomic */
	struct module_file file;    /* set before the symbolizer thread uses it */
	/* the rest is used by the symbolizer thread only */
	struct build_ids ids;
	size_t identified; /* modules with a build-id that was read from their file */
	size_t max_bytes, table_bytes;
	struct module *newest, *oldest; /* list of the modules with a table */
	uint32_t epoch;			/* trims so far */
	struct jit jit;			/* of the session with the stacks that are being named */
	struct perf_map_files perf_map_files; /* has its own lock */
	struct code_names code_names;	      /* has its own lock */
	struct ksyms ksyms;
	size_t kernel_symbol_reader_bytes, kernel_symbol_reader_count; /* as counted in stats */
};

/*
 * Stores the file's build-id. Returns false if the file had another one before, or the kernel
 * reported another one. The kernel's may be wrong: a process may have mapped one file over another
 * between its sample and the reading of its mappings. So the next one that the kernel reports
 * counts again.
 */
bool symbols_identify(struct symbols *s, struct module *m, const uint8_t *id, uint8_t bytes);

/* ---- symbols_builds.c: files of one build. Equal ids alone do not make two files copies. */

/* Returns a file with a table of which `m` is a copy, or NULL. */
struct module *symbols_find_copy(struct symbols *s, struct module *m);

/*
 * Returns the file with the build-id of `m`, if its own file is unreadable or unknown; NULL if
 * there is none, or if files with that id differ from one another.
 */
struct module *symbols_find_sole(struct symbols *s, const struct module *m);

/*
 * Like symbols_find_sole, for a module of which only the build-id is known. First reads the
 * build-ids of the files added since the last call, each once: four small reads, no symbols.
 */
struct module *symbols_resolve(struct symbols *s, struct module *m);

/* Frees the table of a module that has one. */
void symbols_evict_table(struct symbols *s, struct module *m);

#endif
