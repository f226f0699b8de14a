/* SPDX-License-Identifier: BSD-2-Clause */
/* unwind_files_internal.h: what unwind_files.c works with and unwind_files_stats.c tells of. */
#ifndef TROCAR_CONSUMER_UNWIND_FILES_INTERNAL_H
#define TROCAR_CONSUMER_UNWIND_FILES_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>

#include "consumer/unwind/store/unwind_builds.h"
#include "consumer/unwind/store/unwind_files.h"
#include "shared/tools/idmap.h"

enum wanted_state { WANTED, READY, FAILED };

/* A module that somebody asked for. */
struct wanted {
	struct module *module;
	struct wanted *next; /* in the queue */
	enum wanted_state state;
	uint32_t number, epoch; /* of the build */
	int error;
	const char *why;
	uint64_t failed_ns;
	bool known;	  /* the kernel had told the build-id when it failed */
	uint32_t lacking; /* elements for which there was no room */
	uint64_t freed;	  /* as in unwind_files, then */
};

struct unwind_files {
	struct unwind_maps maps;
	struct symbols *symbols;
	pthread_t thread;
	int fd;
	pthread_mutex_t lock; /* of all that follows but `rules` */
	pthread_cond_t changed;
	bool stopping;
	struct unwind_builds builds;
	struct wanted **modules; /* owned, in the order of their coming */
	size_t module_count, module_space;
	struct idmap by_module;
	struct wanted *first, *last; /* to be compiled */
	uint64_t grace_asked, grace_passed;
	uint64_t freed; /* grows when room was made in the pool */
	struct unwind_files_stats stats;
	/* ---- the thread's own */
	struct unwind_rules rules;
	uint32_t rules_told; /* of them in the map */
	uint32_t lacking;    /* elements of the last table that found no room */
};

#endif
