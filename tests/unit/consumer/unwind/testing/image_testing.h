/* SPDX-License-Identifier: BSD-2-Clause */
/* image_testing.h: a file on disk as the ELF readers take it. */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_UNWIND_TESTING_IMAGE_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_UNWIND_TESTING_IMAGE_TESTING_H

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/elf/elf_symbols.h"

/* 0 or -errno; release with image_close, also on failure. */
static inline int image_open(const char *path, struct elf_image *ret_image)
{
	struct stat st;

	*ret_image = (struct elf_image){ .fd = open(path, O_RDONLY | O_CLOEXEC) };
	if (ret_image->fd < 0 || fstat(ret_image->fd, &st) < 0)
		return -errno;
	ret_image->bytes = (uint64_t)st.st_size;
	return 0;
}

static inline void image_close(const struct elf_image *image)
{
	if (image->fd >= 0)
		close(image->fd);
}

#endif
