/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * socket_passes.h: reads the iterator `sockets` in passes, for all sessions that look at sockets. A
 * pass is read in parts that share the turn of the main loop. Passes come SOCKET_PASSES_EVERY_NS
 * apart, or further where they would take more than SOCKET_PASSES_BUDGET_PCT of one CPU; a
 * requested pass comes at once. Main thread only.
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
	uint64_t number; /* grows by 1 from one to the next */
	uint64_t began_ns;
	uint64_t cpu_ns; /* it took so far */
	bool cut;	 /* it could not be read to its end */
};

/* The receiver of sockets; it owns the struct, which is in the list while it holds passes. */
struct socket_watcher {
	/* A pass reports a socket of the watch of `record->slot`. */
	void (*seen)(struct socket_watcher *w, const struct socket_pass *pass,
		     const struct socket_record *record);
	void (*passed)(struct socket_watcher *w, const struct socket_pass *pass);
	struct socket_watcher *next;
};

/* Its owner calls socket_passes_init, and socket_passes_done at the end. */
struct socket_passes {
	struct pinned_maps *pins; /* borrowed */
	struct socket_watcher *watchers;
	struct socket_pass pass; /* the last, or the one that runs */
	int fd;			 /* of the pass that runs; -1: none does */
	bool asked;		 /* the next pass comes at once */
	bool counts;		 /* the pass was due, not asked for: the budget pays */
	uint64_t due_ns;	 /* of the next pass */
	uint64_t bad;		 /* records that were none */
};

void socket_passes_init(struct socket_passes *p, struct pinned_maps *pins);
void socket_passes_done(struct socket_passes *p);

/* Returns whether the iterator can be opened. */
bool socket_passes_are_there(const struct socket_passes *p);

/*
 * Has passes made until socket_passes_drop, the first of them in the next socket_passes_step.
 * Returns its number. The first one empties the kernel side's tables: a consumer that was killed
 * leaves something there.
 */
uint64_t socket_passes_hold(struct socket_passes *p, struct socket_watcher *w);

/* Once the last one has dropped, the kernel side's tables are emptied. */
void socket_passes_drop(struct socket_passes *p, struct socket_watcher *w);

/* Has a pass begin in the next socket_passes_step, behind the one that runs. Returns its number. */
uint64_t socket_passes_ask(struct socket_passes *p);

/* Reads on until `until_ns` (clock_mono_ns), or nothing is due. */
void socket_passes_step(struct socket_passes *p, uint64_t until_ns);

/* Returns whether a pass was left in the middle, or is due now. */
bool socket_passes_has_rest(const struct socket_passes *p);

/* Returns whether the words of a record are those that the kernel side writes. */
bool socket_passes_is_sane(const struct socket_record *record, uint32_t slots);

#endif
