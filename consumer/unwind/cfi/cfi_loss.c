/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwind/cfi/cfi_loss.h"

#include <assert.h>
#include <stddef.h>

#include "shared/tools/macro.h"

static const char *const words[] = {
	[CFI_LOSS_NONE] = NULL,
#define ROW(id, word, help)   [CFI_LOSS_##id] = (word),
#define PART(id, word, help)  ROW(id, word, help)
#define ENTRY(id, word, help) ROW(id, word, help)
#include "consumer/unwind/cfi/cfi_losses.def"
#undef ROW
#undef PART
#undef ENTRY
};

static_assert(ARRAY_SIZE(words) == CFI_LOSS_COUNT_, "a loss without its row");

const char *cfi_loss_word(enum cfi_loss loss)
{
	return words[loss];
}
