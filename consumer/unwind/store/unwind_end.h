/* SPDX-License-Identifier: BSD-2-Clause */
/* unwind_end.h: why the walk over a user stack ended, in words; one row each in unwind_ends.def. */
#ifndef TROCAR_CONSUMER_UNWIND_END_H
#define TROCAR_CONSUMER_UNWIND_END_H

#include "shared/abi/unwind_abi.h"

/* The stable word, and a sentence for people; NULL for UNWIND_END_NONE. */
const char *unwind_end_word(enum unwind_end end);
const char *unwind_end_help(enum unwind_end end);

#endif
