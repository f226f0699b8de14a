/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations on modules and their files for threads other than the symbolizer. */
#include "consumer/symbols/symbols_internal.h"
#include "shared/elf/reason.h"

int symbols_module(struct symbols *s, const struct file_identity *identity, const char *path,
		   bool anonymous, struct module **ret_module)
{
	return modules_file(&s->modules, identity, path, anonymous, ret_module);
}

int symbols_module_by_build_id(struct symbols *s, const uint8_t build_id[BUILD_ID_BYTES],
			       struct module **ret_module)
{
	return modules_build_id(&s->modules, build_id, ret_module);
}

void symbols_place(struct symbols *s, struct module *m, const struct process_key *process,
		   uint64_t start, uint64_t end)
{
	modules_place(&s->modules, m,
		      &(struct module_place){ .process = *process, .start = start, .end = end });
}

bool symbols_learn_build_id(struct symbols *s, struct module *m,
			    const uint8_t build_id[BUILD_ID_BYTES])
{
	return modules_learn_build_id(&s->modules, m, build_id);
}

void symbols_doubt_build_id(struct module *m)
{
	m->build_id_doubted = true;
	m->build_id_misses = 0;
}

uint8_t symbols_build_id(struct symbols *s, const struct module *m,
			 uint8_t id[SYMBOLS_BUILD_ID_MAX])
{
	return modules_id_of(&s->modules, m, id);
}

bool symbols_is(struct symbols *s, const struct module *m, const uint8_t build_id[BUILD_ID_BYTES])
{
	return modules_is(&s->modules, m, build_id);
}

const char *symbols_open(struct symbols *s, const struct module *m, struct elf_image *ret_image)
{
	return reason_word(module_file_open_any(&s->file, m, ret_image));
}

bool symbols_is_build(struct symbols *s, const struct module *m, const uint8_t *id, uint8_t bytes)
{
	return modules_may_be(&s->modules, m, id, bytes);
}
