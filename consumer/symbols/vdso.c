/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/symbols/vdso.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "shared/tools/macro.h"

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
	 * The section headers are the end of the image: strip(1) writes them last, and the kernel
	 * builds the vDSO with it.
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

struct file_identity vdso_identity(uint64_t start, uint64_t end)
{
	struct elf_image own;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	bool same = start > UINT32_MAX && vdso_image(&own) == 0 &&
		    end - start == ALIGN_UP(own.bytes, page);

	return (struct file_identity){ .bytes = same ? 0 : end - start };
}
