/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_files.h: compiled files in the pool that the kernel side reads. Each build is compiled
 * once, whoever maps it, on a thread of its own: the main thread only asks, and is told by a
 * descriptor when there is something new. What a published table refers to is held and stays; what
 * nobody holds is given up for what is wanted, the longest unused first.
 *
 * The kernel side reads rows without a lock. So rows, and the tables of processes, may be
 * overwritten only when no tick can still be reading them: after a grace, which is membarrier(2)
 * with MEMBARRIER_CMD_GLOBAL, a wait for every running BPF program (kernel/sched/membarrier.c).
 */
#ifndef TROCAR_CONSUMER_UNWIND_FILES_H
#define TROCAR_CONSUMER_UNWIND_FILES_H

#include <stdbool.h>

#include "consumer/symbols/symbols.h"
#include "consumer/unwind/compile/unwind_rules.h"
#include "consumer/unwind/compile/unwind_table.h"

/*
 * A file that failed is tried again after this, once the kernel has told its build-id, and where
 * there was no room after unwind_files_retry.
 */
#define UNWIND_RETRY_NS 60000000000ULL

/* Maps of the kernel side: the small ones mmapped by the caller. */
struct unwind_maps {
	int pool_fd; /* borrowed */
	uint32_t pool_elements;
	struct unwind_rule *rules; /* UNWIND_RULES_MAX */
	struct unwind_file *files; /* UNWIND_FILES_MAX */
};

struct unwind_files;

/* Of one module, for `trocar status`. */
struct unwind_module {
	const struct module *module;
	const char *why; /* it has no rows: a stable word; NULL: it has */
	uint32_t rows, bytes;
	uint64_t compile_ns;	  /* of the build, whoever had it compiled */
	uint32_t unsupported_ppm; /* of the bytes of text with rows: those no rule can say */
};

struct unwind_files_stats {
	size_t files, modules, failed;
	uint64_t rows, compiled, compile_ns, evicted, graces;
	uint32_t pool_used, pool_elements, rules;
	bool membarrier; /* false: it is refused here, graces are waits */
};

/* Starts the thread (before the system-call filter). Everything is borrowed. 0 or -errno. */
int unwind_files_new(const struct unwind_maps *maps, struct symbols *symbols,
		     struct unwind_files **ret_files);
void unwind_files_free(struct unwind_files *f);

/* Readable when a file has been settled or a grace has passed; read by unwind_files_news. */
int unwind_files_fd(const struct unwind_files *f);
void unwind_files_news(struct unwind_files *f);

/*
 * Holds the rows of `module`. 0 with the file's number, to be released; -EAGAIN: it is being
 * compiled, the descriptor will tell; any other -errno: there are none. -ENOTSUP: the file is of
 * another machine or of 32 bits. -ENOSYS: of this one, for which nothing is compiled. -ENODATA: it
 * has no call frame information.
 */
int unwind_files_hold(struct unwind_files *f, struct module *module, uint32_t *ret_number);
void unwind_files_release(struct unwind_files *f, uint32_t number);

/* Rows have been released so as to make room: who found none is to ask again. */
void unwind_files_retry(struct unwind_files *f);

/*
 * Where the table base of a held file is in a process that has it mapped at `start` from `offset`
 * on; and so many bytes below `start` its build-id, 0: it has none there. 0 or -ENOENT.
 */
int unwind_files_base(struct unwind_files *f, uint32_t number, uint64_t start, uint64_t offset,
		      uint64_t *ret_base, uint32_t *ret_check);

/* Begins a grace; it has passed once unwind_files_graced gives at least what is returned here. */
uint64_t unwind_files_grace(struct unwind_files *f);
uint64_t unwind_files_graced(struct unwind_files *f);

/* Elements that a held file takes in the pool. */
uint32_t unwind_files_elements(struct unwind_files *f, uint32_t number);

/* Elements of a file for which there was no room (-ENOSPC of unwind_files_hold); 0: that was not
 * it. */
uint32_t unwind_files_lacking(struct unwind_files *f, const struct module *module);

/* Why a module has no rows, a stable word: "anonymous" for memory without a file. */
const char *unwind_files_why(struct unwind_files *f, const struct module *module);

void unwind_files_stats(struct unwind_files *f, struct unwind_files_stats *ret_stats);

/* The i-th module ever asked for; false when there are fewer. */
bool unwind_files_module(struct unwind_files *f, size_t i, struct unwind_module *ret_module);

#endif
