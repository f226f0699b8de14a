/* SPDX-License-Identifier: BSD-2-Clause */
/* reason.h: the reasons why a frame has no function name; one row each in reasons.def. */
#ifndef TROCAR_SHARED_ELF_REASON_H
#define TROCAR_SHARED_ELF_REASON_H

#include <stdbool.h>

enum reason {
	REASON_NONE = 0,
#define REASON(id, word, again, help) REASON_##id,
#include "shared/elf/reasons.def"
#undef REASON
	REASON_COUNT_
};

/* Returns the word of event lines; NULL for REASON_NONE. Words never change. */
const char *reason_word(enum reason reason);

/* Returns whether the cause is temporary, so that the file is worth another try later. */
bool reason_passes(enum reason reason);

/* Returns one sentence for people about a word, or NULL when there is no such word. */
const char *reason_help(const char *word);

/* Returns the reason for a negative errno of elf_symbols_read and elf_reader_open. */
enum reason reason_of_elf(int error);

#endif
