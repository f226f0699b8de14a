/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * other_ends.h: finds the processes at the other ends of waits: of pipes, of TCP
 * connections within the host, and of FUSE file systems. `looks` notes the awaited objects of
 * sessions, and a pass of the iterator `other_ends` walks the descriptors of all processes for it.
 * A pass is read in parts that share the main loop's time slice. Main thread only.
 */
#ifndef TROCAR_CONSUMER_SAMPLING_OTHER_ENDS_H
#define TROCAR_CONSUMER_SAMPLING_OTHER_ENDS_H

#include <stdbool.h>
#include <stdint.h>

struct pinned_maps;
struct wait_objects;

/* Waits for one pass. Its owner keeps the struct until it was called, or was forgotten. */
struct end_watcher {
	/* A pass has ended, or (`failed`) cannot be read. It may not ask again. */
	void (*passed)(struct end_watcher *w, bool failed);
	struct end_watcher *next;
	bool served; /* the running pass is for it */
};

/* The result of a search for the processes at the other ends of waits. */
struct end_search {
	uint32_t sought;   /* objects that a process of this host can be at the other end of */
	uint32_t named;	   /* those of them with a process */
	uint32_t left_out; /* descriptors beyond the limits of the search */
	bool ended;	   /* false: it failed, or took too long */
	bool failed;	   /* the iterator cannot be read */
};

/* Its owner calls other_ends_init, and other_ends_done at the end. */
struct other_ends {
	const struct pinned_maps *pins; /* borrowed */
	struct end_watcher *watchers;
	uint32_t seeks; /* holders */
	int fd;		/* of the running pass; -1: none */
};

void other_ends_init(struct other_ends *e, const struct pinned_maps *pins);
void other_ends_done(struct other_ends *e);

/*
 * Makes `looks` note the awaited objects, until other_ends_drop. The first holder empties the
 * table, which a killed consumer may have left filled.
 */
void other_ends_hold(struct other_ends *e);
void other_ends_drop(struct other_ends *e);

/* Requests a pass, which starts in the next other_ends_step, after the running one. */
void other_ends_ask(struct other_ends *e, struct end_watcher *w);

/* Removes a watcher that was not called yet; else does nothing. */
void other_ends_forget(struct other_ends *e, struct end_watcher *w);

/* Reads passes until `until_ns` (clock_mono_ns), or until nothing is asked. */
void other_ends_step(struct other_ends *e, uint64_t until_ns);

/* Returns whether a pass is unfinished, or asked. */
bool other_ends_has_rest(const struct other_ends *e);

/* Returns the number of objects that a process of this host can be at the other end of. */
uint32_t other_ends_count(const struct wait_objects *objects);

/*
 * Sets the processes that the last pass found at the other ends of the objects. Writes the result
 * to `search`.
 */
void other_ends_name(const struct other_ends *e, struct wait_objects *objects,
		     struct end_search *search);

#endif
