/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/elf/reason.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "shared/tools/macro.h"

static const struct row {
	const char *word, *help;
	bool passes;
} rows[] = {
	[REASON_NONE] = { 0 },
#define REASON(id, word_, again, help_) \
	[REASON_##id] = { .word = (word_), .help = (help_), .passes = (again) },
#include "shared/elf/reasons.def"
#undef REASON
};

static_assert(ARRAY_SIZE(rows) == REASON_COUNT_, "a reason without its row");

const char *reason_word(enum reason reason)
{
	return rows[reason].word;
}

bool reason_passes(enum reason reason)
{
	return rows[reason].passes;
}

const char *reason_help(const char *word)
{
	for (size_t i = REASON_NONE + 1; i < ARRAY_SIZE(rows); i++)
		if (strcmp(rows[i].word, word) == 0)
			return rows[i].help;
	return NULL;
}

enum reason reason_of_elf(int error)
{
	switch (error) {
	case -ENOEXEC:
		return REASON_NOT_ELF;
	case -EBADMSG:
		return REASON_BAD_ELF;
	case -EFBIG:
		return REASON_TOO_LARGE;
	case -ENOMEM:
		return REASON_NO_MEMORY;
	default:
		return REASON_READ_ERROR;
	}
}
