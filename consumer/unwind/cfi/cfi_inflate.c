/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwind/cfi/cfi_inflate.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define OLD_HEADER 12 /* "ZLIB", and the length as 8 bytes, the highest first */

/* Reads the header at the section's start: its bytes, and the length of the rest. */
static int read_header(const struct elf_reader *e, const Elf64_Shdr *s, size_t *ret_header,
		       uint64_t *ret_length)
{
	uint8_t head[sizeof(Elf64_Chdr)] = { 0 };
	size_t bytes = s->sh_flags & SHF_COMPRESSED ? sizeof(head) : OLD_HEADER;
	Elf64_Chdr h;
	int r;

	if (!e->wide || s->sh_size < bytes)
		return -EBADMSG;
	r = elf_reader_at(e->image, s->sh_offset, head, bytes);
	if (r < 0)
		return r;
	*ret_header = bytes;
	if (s->sh_flags & SHF_COMPRESSED) {
		memcpy(&h, head, sizeof(h));
		*ret_length = h.ch_size;
		return h.ch_type == ELFCOMPRESS_ZLIB ? 0 : -EPROTONOSUPPORT;
	}
	*ret_length = 0;
	for (size_t i = 4; i < OLD_HEADER; i++)
		*ret_length = *ret_length << 8 | head[i];
	return memcmp(head, "ZLIB", 4) == 0 ? 0 : -EBADMSG;
}

/* Inflates `from` to exactly `bytes` bytes. */
static int inflate_all(uint8_t *from, size_t from_bytes, uint8_t *to, size_t bytes)
{
	z_stream z = { .next_in = from,
		       .avail_in = (uInt)from_bytes,
		       .next_out = to,
		       .avail_out = (uInt)bytes };
	int r;

	if (inflateInit(&z) != Z_OK)
		return -ENOMEM;
	r = inflate(&z, Z_FINISH);
	inflateEnd(&z);
	if (r == Z_MEM_ERROR)
		return -ENOMEM;
	return r == Z_STREAM_END && z.avail_out == 0 ? 0 : -EBADMSG;
}

int cfi_inflate(const struct elf_reader *e, const Elf64_Shdr *s, uint8_t **ret_data,
		size_t *ret_bytes)
{
	_cleanup_free_ uint8_t *from = NULL, *to = NULL;
	uint64_t length;
	size_t header, rest;
	int r;

	r = read_header(e, s, &header, &length);
	if (r < 0)
		return r;
	if (length > CFI_INFLATE_MAX || s->sh_size > CFI_INFLATE_MAX)
		return -EFBIG;
	rest = (size_t)s->sh_size - header;
	from = malloc(MAX(rest, (size_t)1));
	to = malloc(MAX((size_t)length, (size_t)1));
	if (!from || !to)
		return -ENOMEM;
	r = elf_reader_at(e->image, s->sh_offset + header, from, rest);
	if (r == 0)
		r = inflate_all(from, rest, to, (size_t)length);
	if (r < 0)
		return r;
	*ret_data = TAKE_PTR(to);
	*ret_bytes = (size_t)length;
	return 0;
}
