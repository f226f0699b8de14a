/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_files.h: compiled files in the pool that the kernel side reads. A separate thread compiles
 * each build once, for all processes that map it; the main thread only requests files, and a
 * descriptor becomes readable when there is news. Files that a published table refers to are held
 * and stay. Of the others, the longest unused one is evicted first when space is needed.
 *
 * The kernel side reads rows without a lock. So rows, and the tables of processes, may be
 * overwritten only after a grace period, when no tick can still read them. The grace period is
 * membarrier(2) with MEMBARRIER_CMD_GLOBAL, which waits for every running BPF program
 * (kernel/sched/membarrier.c).
 */
#ifndef TROCAR_CONSUMER_UNWIND_STORE_UNWIND_FILES_H
#define TROCAR_CONSUMER_UNWIND_STORE_UNWIND_FILES_H

#include <stdbool.h>

#include "consumer/symbols/symbols.h"
#include "consumer/unwind/compile/unwind_rules.h"
#include "consumer/unwind/compile/unwind_table.h"

/*
 * A file that failed is tried again after UNWIND_RETRY_NS; or once the kernel has reported its
 * build-id; or, if there was no space, after unwind_files_retry.
 */
#define UNWIND_RETRY_NS 60000000000ULL

/* Maps of the kernel side. The caller has mmapped the small ones. */
struct unwind_maps {
	int pool_fd; /* borrowed */
	uint32_t pool_elements;
	struct unwind_rule *rules; /* UNWIND_RULES_MAX */
	struct unwind_file *files; /* UNWIND_FILES_MAX */
};

struct unwind_files;

/* One module, for `trocar status`. */
struct unwind_module {
	const struct module *module;
	const char *reason; /* a stable word for why it has no rows; NULL: it has rows */
	uint32_t rows, bytes;
	uint64_t compile_ns;	  /* of the build, for any module that shares it */
	uint32_t unsupported_ppm; /* part of the text with rows that no rule can describe */
};

struct unwind_files_stats {
	size_t files, modules, failed;
	uint64_t rows, compiled, compile_ns, evicted, graces;
	uint32_t pool_used, pool_elements, rules;
	bool membarrier; /* false: the kernel refuses it, and a grace is a fixed wait */
};

/*
 * Starts the thread (before the system-call filter). Everything is borrowed. Returns 0 or -errno.
 * Release with unwind_files_free.
 */
int unwind_files_new(const struct unwind_maps *maps, struct symbols *symbols,
		     struct unwind_files **ret_files);
void unwind_files_free(struct unwind_files *f);

/*
 * Returns a descriptor that is readable when a file has been settled or a grace period has passed;
 * unwind_files_news reads it.
 */
int unwind_files_fd(const struct unwind_files *f);
void unwind_files_news(struct unwind_files *f);

/*
 * Holds the rows of `module`. Returns 0 with the file's number, which the caller releases; -EAGAIN:
 * the thread is compiling it, and the descriptor will be readable; any other -errno: there are no
 * rows. -ENOTSUP: the file is for another machine or of 32 bits. -ENOSYS: it is for this machine,
 * but there is no compiler. -ENODATA: it has no call frame information.
 */
int unwind_files_hold(struct unwind_files *f, struct module *module, uint32_t *ret_number);
void unwind_files_release(struct unwind_files *f, uint32_t number);

/* Returns whether the thread is about to read the module's file, or reads it now. */
bool unwind_files_is_pending(struct unwind_files *f, const struct module *module);

/* Drops the state of the modules that symbols_forget has just forgotten. */
void unwind_files_forget(struct unwind_files *f);

/*
 * Call when rows have been released to make space: files that did not fit may be requested again.
 */
void unwind_files_retry(struct unwind_files *f);

/*
 * Computes the address of a held file's table base in a process that has it mapped at `start` from
 * `offset` on. Returns 0 or -ENOENT.
 */
int unwind_files_base(struct unwind_files *f, uint32_t number, uint64_t start, uint64_t offset,
		      uint64_t *ret_base);

/*
 * Writes the claim that a held file, which a process has mapped at `start` from `offset` on, is a
 * language runtime. Returns false if it is none.
 */
bool unwind_files_claim(struct unwind_files *f, uint32_t number, uint64_t start, uint64_t offset,
			struct runtime_claim *claim);

/*
 * Begins a grace period and returns its number; it has passed when unwind_files_graced returns that
 * number or more.
 */
uint64_t unwind_files_grace(struct unwind_files *f);
uint64_t unwind_files_graced(struct unwind_files *f);

/* Returns the number of pool elements of a held file. */
uint32_t unwind_files_elements(struct unwind_files *f, uint32_t number);

/*
 * Returns the number of elements of a file that did not fit (-ENOSPC of unwind_files_hold); 0: it
 * failed for another reason.
 */
uint32_t unwind_files_lacking(struct unwind_files *f, const struct module *module);

/* Returns a stable word for why a module has no rows: "anonymous" for memory without a file. */
const char *unwind_files_why(struct unwind_files *f, const struct module *module);

void unwind_files_stats(struct unwind_files *f, struct unwind_files_stats *ret_stats);

/*
 * Describes the i-th module that was requested and is not forgotten. Returns false if there are
 * fewer.
 */
bool unwind_files_module(struct unwind_files *f, size_t i, struct unwind_module *ret_module);

#endif
