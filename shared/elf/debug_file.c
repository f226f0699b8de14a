/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/elf/debug_file.h"

#include <errno.h>
#include <lzma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shared/elf/elf_file.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define PATH_BYTES    4096
#define CRC_AT_A_TIME (256u << 10)

/* Computes the CRC of the whole file as .gnu_debuglink has it: CRC-32 of IEEE 802.3, as in zlib. */
static int compute_crc(const struct elf_image *image, uint32_t *ret_crc)
{
	_cleanup_free_ uint8_t *part = malloc(CRC_AT_A_TIME);
	uint32_t crc = 0;

	if (!part)
		return -ENOMEM;
	if (image->bytes > DEBUG_FILE_CRC_MAX)
		return -EFBIG;
	for (uint64_t at = 0; at < image->bytes;) {
		ssize_t n = pread(image->fd, part, CRC_AT_A_TIME, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG;
		crc = lzma_crc32(part, (size_t)n, crc);
		at += (uint64_t)n;
	}
	*ret_crc = crc;
	return 0;
}

/*
 * Returns whether the opened file is from the build that `links` names. Without a build-id of
 * BUILD_ID_BYTES_MIN bytes, the CRC must match too.
 */
static bool is_same_build(const struct elf_image *image, const struct elf_links *links,
			  bool by_link)
{
	struct build_id id = { 0 };
	uint32_t crc = 0;
	int r;

	r = build_id_read(image, &id);
	if (r < 0 && r != -ENODATA)
		return false;
	if (links->id.n >= BUILD_ID_BYTES_MIN)
		return build_id_same(&id, &links->id);
	if (id.n != links->id.n || memcmp(id.bytes, links->id.bytes, id.n) != 0)
		return false;
	return by_link && compute_crc(image, &crc) == 0 && crc == links->crc;
}

static int try_path(const char *path, const struct elf_links *links, bool by_link,
		    struct elf_image *ret_image)
{
	struct elf_image image;

	if (elf_file_open_any(path, !by_link, &image) != REASON_NONE)
		return -ENOENT;
	if (!is_same_build(&image, links, by_link)) {
		close(image.fd);
		return -ENOENT;
	}
	*ret_image = image;
	return 0;
}

static int open_by_build_id(const struct debug_file *f, const struct elf_links *links,
			    struct elf_image *ret_image)
{
	char path[PATH_BYTES], hex[2 * BUILD_ID_BYTES_MAX + 1] = "";

	if (links->id.n < BUILD_ID_BYTES_MIN)
		return -ENOENT;
	for (size_t i = 0; i < links->id.n; i++)
		snprintf(hex + 2 * i, 3, "%02x", links->id.bytes[i]);
	if (snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", f->root, hex, hex + 2) >=
	    (int)sizeof(path))
		return -ENOENT;
	return try_path(path, links, false, ret_image);
}

static int open_by_link(const struct debug_file *f, const struct elf_links *links,
			struct elf_image *ret_image)
{
	const char *slash = strrchr(f->path, '/');
	int folder = slash ? (int)(slash - f->path) : 0;
	static const char *const between[] = { "/", "/.debug/" };
	char path[PATH_BYTES];

	if (f->path[0] != '/' || !links->debuglink[0])
		return -ENOENT;
	for (size_t i = 0; i < ARRAY_SIZE(between); i++) {
		if (snprintf(path, sizeof(path), "%.*s%s%s", folder, f->path, between[i],
			     links->debuglink) < (int)sizeof(path) &&
		    try_path(path, links, true, ret_image) == 0)
			return 0;
	}
	if (snprintf(path, sizeof(path), "%s%.*s/%s", f->root, folder, f->path, links->debuglink) >=
	    (int)sizeof(path))
		return -ENOENT;
	return try_path(path, links, true, ret_image);
}

int debug_file_open(void *context, const struct elf_links *links, struct elf_image *ret_image)
{
	const struct debug_file *f = context;

	if (open_by_build_id(f, links, ret_image) == 0)
		return 0;
	return open_by_link(f, links, ret_image);
}
