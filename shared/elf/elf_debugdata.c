/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/elf/elf_debugdata.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define FIRST_BYTES (256u << 10) /* of the output buffer at first; doubled until it fits */

static int map_lzma_error(lzma_ret r)
{
	switch (r) {
	case LZMA_MEM_ERROR:
		return -ENOMEM;
	case LZMA_MEMLIMIT_ERROR:
		return -EFBIG;
	default:
		return -EBADMSG;
	}
}

/* Doubles the output buffer, up to ELF_DEBUGDATA_OUT_MAX. */
static int grow_output(lzma_stream *z, uint8_t **data, size_t *space)
{
	size_t larger = *space ? *space * 2 : FIRST_BYTES, used = *space;
	uint8_t *more;

	if (larger > ELF_DEBUGDATA_OUT_MAX)
		return -EFBIG;
	more = realloc(*data, larger);
	if (!more)
		return -ENOMEM;
	*data = more;
	*space = larger;
	z->next_out = more + used;
	z->avail_out = larger - used;
	return 0;
}

/*
 * Decodes the stream to its end. The decoder has all the input: if it makes no progress, the data
 * is broken.
 */
static int unpack_stream(lzma_stream *z, uint8_t **data)
{
	size_t space = 0;

	for (;;) {
		lzma_ret r;

		if (z->avail_out == 0) {
			int g = grow_output(z, data, &space);

			if (g < 0)
				return g;
		}
		r = lzma_code(z, LZMA_FINISH);
		if (r == LZMA_STREAM_END)
			return 0;
		if (r != LZMA_OK)
			return map_lzma_error(r);
	}
}

int elf_debugdata_read(const struct elf_reader *e, const Elf64_Shdr *s, uint8_t **ret_data,
		       size_t *ret_bytes)
{
	_cleanup_free_ uint8_t *packed = NULL, *data = NULL;
	lzma_stream z = LZMA_STREAM_INIT;
	size_t bytes;
	int r;

	r = elf_reader_content(e, s, ELF_DEBUGDATA_IN_MAX, &packed);
	if (r < 0)
		return r;
	z.next_in = packed;
	z.avail_in = (size_t)s->sh_size;
	if (lzma_stream_decoder(&z, ELF_DEBUGDATA_MEMORY_MAX, 0) != LZMA_OK)
		return -ENOMEM;
	r = unpack_stream(&z, &data);
	bytes = (size_t)z.total_out;
	lzma_end(&z);
	if (r < 0)
		return r;
	*ret_data = TAKE_PTR(data);
	*ret_bytes = bytes;
	return 0;
}
