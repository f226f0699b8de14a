/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cfi_entry.h: reads the entries of call frame information. A common information entry (CIE)
 * describes the entries that refer to it; a frame description entry (FDE) covers one range of text.
 * Sources: DWARF 5 section 6.4.1; LSB Core 5.0 section 10.6.1 for the differences of .eh_frame.
 */
#ifndef TROCAR_CONSUMER_UNWIND_CFI_CFI_ENTRY_H
#define TROCAR_CONSUMER_UNWIND_CFI_CFI_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/unwind/cfi/cfi_bytes.h"
#include "consumer/unwind/cfi/cfi_section.h"

#define CFI_NO_CIE	   UINT64_MAX
#define CFI_CODE_ALIGN_MAX 255 /* machines have 1, 2 or 4 */

struct cfi_entry {
	size_t at, next;       /* offsets of this entry and the next, in the section */
	bool common;	       /* a CIE */
	uint64_t cie;	       /* of an FDE: offset of its CIE; CFI_NO_CIE: outside the section */
	struct cfi_bytes body; /* the bytes after the id */
};

struct cfi_cie {
	size_t at;
	uint64_t code_align;
	int64_t data_align;
	uint64_t return_register;
	uint8_t encoding;	  /* of addresses, in its FDEs and in set_loc */
	bool sized;		  /* 'z': its FDEs have the length of their augmentation */
	bool signal;		  /* 'S': a signal frame */
	struct cfi_bytes program; /* initial instructions */
};

struct cfi_fde {
	uint64_t start, bytes;
	struct cfi_bytes program;
};

/*
 * Reads the entry at `at`, which is below s->bytes. Returns false if it extends beyond the section.
 */
bool cfi_entry_read(const struct cfi_section *s, size_t at, struct cfi_entry *ret_entry);

/*
 * Reads the CIE at offset `at`. Returns false if there is none, or if it is malformed or has an
 * unknown version or augmentation.
 */
bool cfi_entry_cie(const struct cfi_section *s, uint64_t at, struct cfi_cie *ret_cie);

/* Reads an FDE of the CIE `cie`. Returns false if it is malformed. */
bool cfi_entry_fde(const struct cfi_section *s, const struct cfi_entry *entry,
		   const struct cfi_cie *cie, struct cfi_fde *ret_fde);

/* Returns the virtual address of a byte of the section. */
uint64_t cfi_entry_address(const struct cfi_section *s, const uint8_t *at);

#endif
