/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_end.h: names the reasons why the walk of a user stack ended; one row each in
 * unwind_ends.def.
 */
#ifndef TROCAR_CONSUMER_UNWIND_STORE_UNWIND_END_H
#define TROCAR_CONSUMER_UNWIND_STORE_UNWIND_END_H

#include "shared/abi/unwind_abi.h"

/* Return the stable word, and a sentence for people; NULL for UNWIND_END_NONE. */
const char *unwind_end_word(enum unwind_end end);
const char *unwind_end_help(enum unwind_end end);

#endif
