/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lock_names.h: names those locks of a session that are variables of a module, by the symbols of
 * the file, which are read once for all locks in it. For other locks it describes the memory that
 * contains them. Report thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_LOCKS_LOCK_NAMES_H
#define TROCAR_CONSUMER_EVIDENCE_LOCKS_LOCK_NAMES_H

#include <stdint.h>

#include "consumer/session/session_result.h"
#include "shared/elf/elf_object.h"

struct symbols;

/* Location of a lock. All NULL: unknown. */
struct lock_name {
	const char *module; /* path of the module, borrowed */
	const char *
		symbol; /* points to `text`; NULL: `reason` has the reason, a word of reasons.def */
	const char *reason; /* without `module`: the file could not be read */
	uint64_t offset;    /* of the lock in the variable */
	/* The memory that contains a lock outside of modules, if its kind is known; borrowed. */
	const struct lock_memory *memory;
	char text[ELF_OBJECT_NAME_BYTES];
};

/*
 * Returns a name for each item of the session's lock_waits, in an array that the caller frees; NULL
 * if there are none, or without memory. Opens files in the same way as symbols_open.
 */
struct lock_name *lock_names_read(const struct session_result *s, struct symbols *symbols);

/*
 * Writes "lock ledger_lock in libshop.so", "one lock on the heap", "one lock in shared memory
 * memfd:queue" or, if `name` is NULL, "one lock".
 */
void lock_names_say(const struct lock_name *name, char *text, size_t space);

#endif
