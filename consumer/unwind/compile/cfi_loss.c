/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwind/compile/cfi_loss.h"

#include <assert.h>
#include <stddef.h>

#include "shared/tools/macro.h"

static const struct row {
	const char *word, *help;
} rows[] = {
	[CFI_LOSS_NONE] = { 0 },
#define ROW(id, word_, help_)	[CFI_LOSS_##id] = { .word = (word_), .help = (help_) },
#define PART(id, word_, help_)	ROW(id, word_, help_)
#define ENTRY(id, word_, help_) ROW(id, word_, help_)
#include "consumer/unwind/compile/cfi_losses.def"
#undef ROW
#undef PART
#undef ENTRY
};

static_assert(ARRAY_SIZE(rows) == CFI_LOSS_COUNT_, "a loss without its row");

const char *cfi_loss_word(enum cfi_loss loss)
{
	return rows[loss].word;
}

const char *cfi_loss_help(enum cfi_loss loss)
{
	return rows[loss].help;
}
