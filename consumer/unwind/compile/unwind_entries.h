/* SPDX-License-Identifier: BSD-2-Clause */
/* unwind_entries.h: reads the entries of a section and caches the contents of their CIEs. */
#ifndef TROCAR_CONSUMER_UNWIND_COMPILE_UNWIND_ENTRIES_H
#define TROCAR_CONSUMER_UNWIND_COMPILE_UNWIND_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/unwind/cfi/cfi_entry.h"
#include "consumer/unwind/cfi/cfi_loss.h"
#include "consumer/unwind/cfi/cfi_program.h"
#include "consumer/unwind/cfi/cfi_section.h"
#include "consumer/unwind/compile/unwind_plain.h"

#define UNWIND_CIE_SLOTS 256 /* cached CIEs, by their offset; a power of two */

/* A CIE that was read, valid or not, and the state after its instructions. */
struct unwind_cie {
	bool known, good;
	bool usual; /* its FDEs have the usual form */
	bool plain; /* `start` is set: unwind_plain_run may run its FDEs */
	uint64_t at;
	struct cfi_cie cie;
	struct cfi_state initial;
	struct unwind_plain start;
};

/* Large, so allocate it on the heap. The caller sets `section`; the rest is 0 at first. */
struct unwind_entries {
	struct cfi_section section; /* owned */
	struct cfi_program program; /* its steps count the bytes of CIEs too */
	struct unwind_cie cies[UNWIND_CIE_SLOTS];
};

struct unwind_entry {
	size_t next;	    /* offset of the next entry */
	bool function;	    /* a valid FDE: `cie` and `fde` are set */
	enum cfi_loss loss; /* of an invalid FDE: why it is lost; CFI_LOSS_NONE for a CIE */
	const struct unwind_cie *cie; /* valid until the next one is read */
	struct cfi_fde fde;
};

/*
 * Reads the entry at `at`, which is below the section's end. Returns 0, or -EBADMSG if it extends
 * beyond the section.
 */
int unwind_entries_read(struct unwind_entries *e, size_t at, struct unwind_entry *ret_entry);
void unwind_entries_done(struct unwind_entries *e);

#endif
