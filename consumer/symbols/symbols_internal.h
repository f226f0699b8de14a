/* SPDX-License-Identifier: BSD-2-Clause */
/* symbols_internal.h: the members of struct symbols, for symbols*.c only. */
#ifndef TROCAR_CONSUMER_SYMBOLS_SYMBOLS_INTERNAL_H
#define TROCAR_CONSUMER_SYMBOLS_SYMBOLS_INTERNAL_H

#include "consumer/jit/perf_map_names.h"
#include "consumer/symbols/build_ids.h"
#include "consumer/symbols/kernel_symbol_reader.h"
#include "consumer/symbols/module_file.h"
#include "consumer/symbols/modules.h"
#include "consumer/symbols/symbols.h"

struct symbols {
	struct modules modules;	    /* its lock also protects symbols and bytes of stats */
	struct symbols_stats stats; /* its other members are atomic */
	struct module_file file;    /* set before the symbolizer thread uses it */
	/* the rest is used by the symbolizer thread only */
	struct build_ids ids;
	size_t identified; /* modules whose file's build-id was read */
	size_t max_bytes, table_bytes;
	struct module *newest, *oldest;	      /* list of the modules with a table */
	uint32_t epoch;			      /* trims so far */
	struct jit jit;			      /* of the session whose stacks are being named */
	struct perf_map_files perf_map_files; /* has its own lock */
	struct ksyms ksyms;
	size_t kernel_symbol_reader_bytes, kernel_symbol_reader_count; /* as counted in stats */
};

/* Frees the table of a module that has one. */
void symbols_evict_table(struct symbols *s, struct module *m);

#endif
