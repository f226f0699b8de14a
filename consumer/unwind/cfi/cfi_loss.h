/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cfi_loss.h: names the parts of call frame information that no rule can describe; one row each in
 * cfi_losses.def.
 */
#ifndef TROCAR_CONSUMER_UNWIND_CFI_CFI_LOSS_H
#define TROCAR_CONSUMER_UNWIND_CFI_CFI_LOSS_H

enum cfi_loss {
	CFI_LOSS_NONE = 0,
#define ROW(id, word, help)   CFI_LOSS_##id,
#define PART(id, word, help)  CFI_LOSS_##id,
#define ENTRY(id, word, help) CFI_LOSS_##id,
#include "consumer/unwind/cfi/cfi_losses.def"
#undef ROW
#undef PART
#undef ENTRY
	CFI_LOSS_COUNT_
};

/* Returns the stable word of a loss; NULL for CFI_LOSS_NONE. */
const char *cfi_loss_word(enum cfi_loss loss);

#endif
