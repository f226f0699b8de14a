/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mappings_reread.h: mappings that are read once more a moment later: of an image that was new when
 * they were read, and where a stack has left them just after that. Main thread only.
 */
#ifndef TROCAR_CONSUMER_PROCESS_MAPPINGS_REREAD_H
#define TROCAR_CONSUMER_PROCESS_MAPPINGS_REREAD_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/process/process.h"
#include "consumer/process/process_mappings.h"

/* Processes that are noted at a time; of the rest a sample will tell. */
#define MAPPINGS_REREAD_MAX 64

struct mappings_reread {
	struct processes *processes;	   /* borrowed */
	struct process_mappings *mappings; /* borrowed */
	struct process_key keys[MAPPINGS_REREAD_MAX];
	size_t count;
};

void mappings_reread_init(struct mappings_reread *r, struct processes *processes,
			  struct process_mappings *mappings);

/*
 * Call after the mappings of `p` were read: if its execve(2) was less than 30 ms ago the dynamic
 * loader had hardly begun, and they are read again by mappings_reread_settle.
 */
void mappings_reread_young(struct mappings_reread *r, const struct process *p);

/*
 * A stack of `p` has left the mappings that its table has: reads them again, at once if that was
 * not done just now, else by mappings_reread_settle.
 */
void mappings_reread_unmapped(struct mappings_reread *r, struct process *p, uint64_t time_ns);

/* Reads the mappings of those that were noted. */
void mappings_reread_settle(struct mappings_reread *r);

#endif
