/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwind/store/unwind_end.h"

#include <stddef.h>

static const struct {
	const char *word, *help;
} rows[UNWIND_END_COUNT_] = {
#define UNWIND_END(id, word, help) [UNWIND_END_##id] = { word, help },
#include "shared/abi/unwind_ends.def"
#undef UNWIND_END
};

const char *unwind_end_word(enum unwind_end end)
{
	return rows[end].word;
}

const char *unwind_end_help(enum unwind_end end)
{
	return rows[end].help;
}
