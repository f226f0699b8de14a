/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_entries.h: reads the entries of a section, with what their common entries say kept at
 * hand.
 */
#ifndef TROCAR_CONSUMER_UNWIND_ENTRIES_H
#define TROCAR_CONSUMER_UNWIND_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/unwind/compile/cfi_entry.h"
#include "consumer/unwind/compile/cfi_loss.h"
#include "consumer/unwind/compile/cfi_program.h"
#include "consumer/unwind/compile/cfi_section.h"
#include "consumer/unwind/compile/unwind_plain.h"

#define UNWIND_CIE_SLOTS 256 /* CIEs kept read, by their place; a power of two */

/* A CIE that was read, good or not, and the state behind its instructions. */
struct unwind_cie {
	bool known, good;
	bool usual; /* its FDEs are written as nearly all are */
	bool plain; /* `start` holds: unwind_plain_run may run its FDEs */
	uint64_t at;
	struct cfi_cie cie;
	struct cfi_state initial;
	struct unwind_plain start;
};

/* Large: on the heap. The caller sets `section`, the rest is 0 at first. */
struct unwind_entries {
	struct cfi_section section; /* owned */
	struct cfi_program program; /* its steps count the bytes of CIEs too */
	struct unwind_cie cies[UNWIND_CIE_SLOTS];
};

struct unwind_entry {
	size_t next;		      /* of the entry behind it */
	bool function;		      /* a good FDE: the rest is set */
	enum cfi_loss loss;	      /* of another FDE; CFI_LOSS_NONE of a CIE */
	const struct unwind_cie *cie; /* until the next one is read */
	struct cfi_fde fde;
};

/*
 * The entry at `at`, which is below the section's end. 0, or -EBADMSG when it reaches beyond the
 * section.
 */
int unwind_entries_read(struct unwind_entries *e, size_t at, struct unwind_entry *ret_entry);
void unwind_entries_done(struct unwind_entries *e);

#endif
