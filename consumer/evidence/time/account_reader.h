/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * account_reader.h: one reading of the iterator `account_threads`: the time accounts of all living
 * threads of a session, in slices, so that no iteration of the main loop takes long. Main thread
 * only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_TIME_ACCOUNT_READER_H
#define TROCAR_CONSUMER_EVIDENCE_TIME_ACCOUNT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi/abi.h"

struct pinned_maps;

struct account_reader {
	const struct pinned_maps *pins; /* borrowed, like all members before `items` */
	uint32_t slot, only_tgid;
	struct account_record
		*items; /* owned; accounts of the session, sorted by tid once complete */
	size_t count, space;
	uint64_t lost;	    /* threads that did not fit into the table */
	uint64_t no_memory; /* part of `lost`: the table was not full */
	int fd;
	size_t have;		   /* bytes in the buffer */
	unsigned int busy_retries; /* reads in a row that failed with EINTR or EAGAIN */
	uint8_t buffer[2 * ACCOUNTS_READ_BYTES] __attribute__((aligned(8)));
};

/*
 * Begins a reading for the session on `slot`; `only_tgid` 0: of all processes. Returns 0 or -errno;
 * after an error nothing is open. account_reader_done ends the reading.
 */
int account_reader_open(struct account_reader *r, const struct pinned_maps *pins, uint32_t slot,
			uint32_t only_tgid);

/*
 * Reads until `until_ns` (clock_mono_ns). Returns 1 if there is more, 0 if the reading is complete,
 * or -errno.
 */
int account_reader_step(struct account_reader *r, uint64_t until_ns);

/* Returns whether the account belongs to the reader's session. */
bool account_reader_wants(const struct account_reader *r, const struct time_account *a);

/* Returns the record of a living thread, by its tid and the begin of its account, or NULL. */
const struct account_record *account_reader_find(const struct account_reader *r, uint32_t tid,
						 uint64_t first_ns);

/* Closes and frees it. */
void account_reader_done(struct account_reader *r);

#endif
