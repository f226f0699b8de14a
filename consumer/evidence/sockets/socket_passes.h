/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * socket_passes.h: reads the iterator `sockets` in passes, for all sessions that take socket
 * snapshots. A pass is read in parts that share the main loop's time slice. Passes are
 * SOCKET_PASSES_EVERY_NS apart, or further if they would take more than SOCKET_PASSES_BUDGET_PCT of
 * one CPU; a requested pass starts at once. Main thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_SOCKETS_SOCKET_PASSES_H
#define TROCAR_CONSUMER_EVIDENCE_SOCKETS_SOCKET_PASSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi/abi.h"
#include "shared/tools/macro.h"

struct pinned_maps;

#define SOCKET_PASSES_EVERY_NS	 (500 * NSEC_PER_MSEC)
#define SOCKET_PASSES_BUDGET_PCT 1

struct socket_pass {
	uint64_t number; /* 1 more than that of the pass before */
	uint64_t began_ns;
	uint64_t cpu_ns; /* CPU time so far */
	bool cut;	 /* not read to its end */
};

/*
 * A receiver of socket records. Its owner keeps the struct, which is in the list while it holds
 * passes.
 */
struct socket_watcher {
	/* A pass found a socket of the watch of `record->slot`. */
	void (*seen)(struct socket_watcher *w, const struct socket_pass *pass,
		     const struct socket_record *record);
	void (*passed)(struct socket_watcher *w, const struct socket_pass *pass);
	struct socket_watcher *next;
};

/* Its owner calls socket_passes_init, and socket_passes_done at the end. */
struct socket_passes {
	struct pinned_maps *pins; /* borrowed */
	struct socket_watcher *watchers;
	struct socket_pass pass; /* the last pass, or the running one */
	int fd;			 /* of the running pass; -1: none */
	bool asked;		 /* the next pass starts at once */
	bool counts;		 /* the pass was due, not requested: the budget pays for it */
	uint64_t due_ns;	 /* of the next pass */
	uint64_t bad;		 /* malformed records */
};

void socket_passes_init(struct socket_passes *p, struct pinned_maps *pins);
void socket_passes_done(struct socket_passes *p);

/* Returns whether the iterator can be opened. */
bool socket_passes_are_there(const struct socket_passes *p);

/*
 * Starts periodic passes; socket_passes_drop stops them. The next pass starts in the next
 * socket_passes_step; returns its number. The first holder empties the kernel side's tables, which
 * a killed consumer may have left filled.
 */
uint64_t socket_passes_hold(struct socket_passes *p, struct socket_watcher *w);

/* Removes a holder. After the last one the kernel side's tables are emptied. */
void socket_passes_drop(struct socket_passes *p, struct socket_watcher *w);

/*
 * Requests a pass, which starts in the next socket_passes_step, after the running one. Returns its
 * number.
 */
uint64_t socket_passes_ask(struct socket_passes *p);

/* Reads passes until `until_ns` (clock_mono_ns), or until nothing is due. */
void socket_passes_step(struct socket_passes *p, uint64_t until_ns);

/* Returns whether a pass is unfinished, or is due now. */
bool socket_passes_has_rest(const struct socket_passes *p);

/* Returns whether the record's fields have values that the kernel side can write. */
bool socket_passes_is_sane(const struct socket_record *record, uint32_t slots);

#endif
