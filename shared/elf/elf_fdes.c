/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/elf/elf_fdes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"

/* The only supported encodings: 32-bit numbers; in the table they are relative to the header. */
#define VERSION	   1
#define COUNT_KIND 0x03 /* DW_EH_PE_udata4 */
#define TABLE_KIND 0x3b /* DW_EH_PE_datarel | DW_EH_PE_sdata4 */

/* The header of .eh_frame_hdr with a 32-bit eh_frame_ptr. */
struct header {
	uint8_t version, pointer_kind, count_kind, table_kind;
	int32_t pointer;
	uint32_t count;
};

/* The first words of an FDE with 32-bit addresses, each relative to its own location. */
struct fde {
	uint32_t bytes, cie;
	int32_t start;
	uint32_t length;
};

void elf_fdes_done(struct elf_fdes *f)
{
	free(f->rows);
	*f = (struct elf_fdes){ 0 };
}

static const Elf64_Phdr *find_header(const struct elf_reader *e)
{
	for (size_t i = 0; i < e->segment_count; i++)
		if (e->segments[i].p_type == PT_GNU_EH_FRAME)
			return &e->segments[i];
	return NULL;
}

static int read_rows(const struct elf_reader *e, const Elf64_Phdr *p, const struct header *h,
		     struct elf_fdes *ret_fdes)
{
	_cleanup_free_ int32_t *rows = NULL;
	size_t bytes = (size_t)h->count * 2 * sizeof(*rows);
	int r;

	if (h->count == 0)
		return -ENODATA;
	if (h->count > ELF_FDES_MAX)
		return -EFBIG;
	if (bytes > p->p_filesz - sizeof(*h))
		return -EBADMSG;
	rows = malloc(bytes);
	if (!rows)
		return -ENOMEM;
	r = elf_reader_at(e->image, p->p_offset + sizeof(*h), rows, bytes);
	if (r < 0)
		return r;
	*ret_fdes =
		(struct elf_fdes){ .rows = TAKE_PTR(rows), .count = h->count, .base = p->p_vaddr };
	return 0;
}

int elf_fdes_read(const struct elf_reader *e, struct elf_fdes *ret_fdes)
{
	const Elf64_Phdr *p = find_header(e);
	struct header h;
	int r;

	if (!p || p->p_filesz < sizeof(h))
		return -ENODATA;
	r = elf_reader_at(e->image, p->p_offset, &h, sizeof(h));
	if (r < 0)
		return r;
	/* The low three bits of an encoding are the width of the number. */
	if (h.version != VERSION || (h.pointer_kind & 7) != COUNT_KIND ||
	    h.count_kind != COUNT_KIND || h.table_kind != TABLE_KIND)
		return -ENODATA;
	return read_rows(e, p, &h, ret_fdes);
}

static uint64_t start_of(const struct elf_fdes *f, size_t i)
{
	return f->base + (uint64_t)(int64_t)f->rows[2 * i];
}

/* Returns the number of FDEs that begin at or below the address. */
static size_t count_not_above(const struct elf_fdes *f, uint64_t address)
{
	return LOWER_BOUND(i, 0, f->count, start_of(f, i) <= address);
}

/* Reads bytes of the file by their link address. -EBADMSG: no segment loads that address. */
static int read_loaded(const struct elf_reader *e, uint64_t address, void *to, size_t bytes)
{
	for (size_t i = 0; i < e->segment_count; i++) {
		const Elf64_Phdr *p = &e->segments[i];

		if (p->p_type == PT_LOAD && address - p->p_vaddr < p->p_filesz)
			return elf_reader_at(e->image, p->p_offset + (address - p->p_vaddr), to,
					     bytes);
	}
	return -EBADMSG;
}

uint64_t elf_fdes_end(const struct elf_fdes *f, const struct elf_reader *e, uint64_t address)
{
	size_t i = count_not_above(f, address);
	struct fde fde;
	uint64_t at, start;

	if (i == 0)
		return 0;
	start = start_of(f, i - 1);
	at = f->base + (uint64_t)(int64_t)f->rows[2 * (i - 1) + 1];
	/* The CIE, which is not read, has the encoding: another one would give another start. */
	if (read_loaded(e, at, &fde, sizeof(fde)) < 0 ||
	    at + offsetof(struct fde, start) + (uint64_t)(int64_t)fde.start != start ||
	    address - start >= fde.length)
		return 0;
	return start + fde.length;
}

uint64_t elf_fdes_next(const struct elf_fdes *f, uint64_t address)
{
	size_t i = count_not_above(f, address);

	return i < f->count ? start_of(f, i) : 0;
}
