/* SPDX-License-Identifier: BSD-2-Clause */
/* unwind_fdes.h: the list of a file's FDEs, to be run by ascending address. */
#ifndef TROCAR_CONSUMER_UNWIND_FDES_H
#define TROCAR_CONSUMER_UNWIND_FDES_H

#include <stddef.h>
#include <stdint.h>

struct unwind_fde {
	uint32_t start, bytes;	   /* of text, less the table's base; below UNWIND_SPAN_MAX */
	uint32_t cie;		   /* its CIE's place in the section */
	uint32_t code, code_bytes; /* its instructions' */
};

struct unwind_fdes {
	struct unwind_fde *items; /* owned */
	size_t count, space;
};

/* 0; -E2BIG beyond UNWIND_ENTRIES_MAX; -ENOMEM. */
int unwind_fdes_push(struct unwind_fdes *f, struct unwind_fde item);

/* By start; those that start at the same address keep their order. 0, -ENOMEM. */
int unwind_fdes_sort(struct unwind_fdes *f);
void unwind_fdes_done(struct unwind_fdes *f);

#endif
