/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/elf/elf_layout.h"

#include <errno.h>

/* Returns the first offset from `end` on that equals the segment's address modulo its alignment. */
static uint64_t find_next_offset(uint64_t end, const Elf64_Phdr *p)
{
	uint64_t page = p->p_align > 1 ? p->p_align : 1;

	return end + (p->p_vaddr - end) % page;
}

int elf_layout_restore(struct elf_reader *e)
{
	bool known = true, code = false;
	uint64_t end = 0;

	for (size_t i = 0; i < e->segment_count; i++) {
		Elf64_Phdr *p = &e->segments[i];
		bool emptied = p->p_filesz != p->p_memsz;

		if (p->p_type != PT_LOAD)
			continue;
		known = known && !(emptied && (p->p_flags & PF_W));
		if (!known) {
			p->p_filesz = 0;
			continue;
		}
		if (emptied) {
			p->p_offset = end ? find_next_offset(end, p) : 0;
			p->p_filesz = p->p_memsz;
		}
		end = p->p_offset + p->p_filesz;
		code = code || (p->p_flags & PF_X);
	}
	return code ? 0 : -ENODATA;
}
