/* SPDX-License-Identifier: BSD-2-Clause */
/* unwind_files_internal.h: the members that unwind_files.c and unwind_files_stats.c use. */
#ifndef TROCAR_CONSUMER_UNWIND_STORE_UNWIND_FILES_INTERNAL_H
#define TROCAR_CONSUMER_UNWIND_STORE_UNWIND_FILES_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>

#include "consumer/unwind/store/unwind_builds.h"
#include "consumer/unwind/store/unwind_files.h"
#include "shared/tools/idmap.h"

enum wanted_state { WANTED, READY, FAILED };

/* A module that was requested. */
struct wanted {
	struct module *module;
	struct wanted *next; /* next in the queue */
	enum wanted_state state;
	uint32_t number, epoch; /* of the build */
	int error;
	const char *reason;
	uint64_t failed_ns;
	bool known;	  /* the kernel had reported the build-id when the attempt began */
	uint32_t lacking; /* elements that did not fit */
	uint64_t freed;	  /* value of `freed` in struct unwind_files at the failure */
};

struct unwind_files {
	struct unwind_maps maps;
	struct symbols *symbols;
	pthread_t thread;
	int fd;
	pthread_mutex_t lock; /* protects all members below except `rules` */
	pthread_cond_t changed;
	bool stopping;
	struct unwind_builds builds;
	struct wanted **modules; /* owned, in the order of their first request */
	size_t module_count, module_space;
	struct idmap by_module;
	struct wanted *first, *last; /* queue of files to compile */
	uint64_t grace_asked, grace_passed;
	uint64_t freed; /* grows when rows were released to make space */
	struct unwind_files_stats stats;
	/* ---- used by the unwinder thread only */
	struct unwind_rules rules;
	uint32_t rules_told; /* number of rules already in the map */
	uint32_t lacking;    /* elements of the last table, if it did not fit */
};

#endif
