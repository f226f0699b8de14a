/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mapping_reading.h: makes the mappings of one process from the records that the `vmas` iterator
 * writes for it, possibly in parts. Main thread only.
 */
#ifndef TROCAR_CONSUMER_MAPPINGS_MAPPING_READING_H
#define TROCAR_CONSUMER_MAPPINGS_MAPPING_READING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/mappings/mappings.h"
#include "shared/abi/abi.h"

/* Set symbols, start_ns, tgid and mappings.read_ns before the first record. */
struct mapping_reading {
	struct symbols *symbols; /* borrowed */
	struct mappings mappings;
	size_t space;
	uint64_t start_ns;  /* start time that the process must have */
	uint64_t more_from; /* where the kernel side stopped; 0: at the end */
	uint32_t tgid;
	bool seen;    /* the iterator listed the process */
	bool other;   /* another process has the pid */
	bool surplus; /* the mappings did not fit and some were omitted */
};

void mapping_reading_done(struct mapping_reading *in);

/*
 * Takes a record; skips those of other processes. Returns 0; -ESTALE if the process got another
 * image during the reading; -ENOMEM.
 */
int mapping_reading_take(struct mapping_reading *in, const struct mapping_record *record,
			 const char *path);

/*
 * Returns why the iterator listed nothing: -ESRCH if the process has ended or another has its pid,
 * -EACCES if the kernel side does not list it.
 */
int mapping_reading_why_unseen(const struct mapping_reading *in);

/*
 * Moves the mappings, sorted, to *ret_mappings. Returns 0; -EOVERFLOW if some were omitted:
 * *ret_mappings then has those that fitted.
 */
int mapping_reading_end(struct mapping_reading *in, struct mappings *ret_mappings);

#endif
