/* SPDX-License-Identifier: BSD-2-Clause */
/* What other threads than the symbolizer need of the modules' files; any thread. */
#include "consumer/symbols/symbols_internal.h"
#include "shared/elf/reason.h"

const char *symbols_open(struct symbols *s, const struct module *m, struct elf_image *ret_image)
{
	return reason_word(module_file_open_any(&s->file, m, ret_image));
}

bool symbols_is_build(struct symbols *s, const struct module *m, const uint8_t *id, uint8_t bytes)
{
	return modules_may_be(&s->modules, m, id, bytes);
}
