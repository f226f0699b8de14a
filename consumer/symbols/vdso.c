/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/symbols/vdso.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#define VDSO_BYTES_MAX (64u << 10)

int vdso_image(struct elf_image *ret_image)
{
	const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)getauxval(AT_SYSINFO_EHDR);
	uint64_t bytes;

	if (!header)
		return -ENOENT;
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
		return -EBADMSG;
	/*
	 * The section headers are the end of the image: strip(1) writes them last, and so the
	 * kernel builds it.
	 */
	bytes = (uint64_t)header->e_shoff + (uint64_t)header->e_shnum * header->e_shentsize;
	if (bytes < sizeof(*header) || bytes > VDSO_BYTES_MAX)
		return -EBADMSG;
	*ret_image = (struct elf_image){
		.fd = -1,
		.memory = (const uint8_t *)header,
		.bytes = bytes,
	};
	return 0;
}
