/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lock_names.h: names the locks of a session that are variables of a module: by the symbols of the
 * file, which are read once for all locks in it. For other locks it describes the memory that holds
 * them. Report thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_LOCKS_LOCK_NAMES_H
#define TROCAR_CONSUMER_EVIDENCE_LOCKS_LOCK_NAMES_H

#include <stdint.h>

#include "consumer/session/session_result.h"
#include "shared/elf/elf_object.h"

struct symbols;

/* Where a lock is. All NULL: it is not known. */
struct lock_name {
	const char *module; /* its path, borrowed */
	const char
		*symbol; /* points to `text`; NULL: `why` has the reason, a word of reasons.def */
	const char *why; /* without `module`: the file could not be read */
	uint64_t offset; /* of the lock in the variable */
	/* What it lies in, of a kind that is known, where it is in no module; borrowed. */
	const struct lock_memory *memory;
	char text[ELF_OBJECT_NAME_BYTES];
};

/*
 * Returns a name for each item of the session's lock_waits, in an array that the caller frees;
 * NULL: there are none, or no memory. Opens files as symbols_open does.
 */
struct lock_name *lock_names_read(const struct session_result *s, struct symbols *symbols);

/*
 * Writes "lock ledger_lock in libshop.so", "one lock on the heap", "one lock in shared memory
 * memfd:queue" or "one lock"; NULL: it has no name.
 */
void lock_names_say(const struct lock_name *name, char *text, size_t space);

#endif
