/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * build_id.c: any bytes as a file: its build-id is bounded, is within the file, and is the same
 * from a descriptor as from memory.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shared/elf/build_id.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	_cleanup_close_ int fd = memfd_create("fuzz", MFD_CLOEXEC);
	const struct elf_image file = { .fd = fd, .bytes = bytes };
	const struct elf_image memory = { .fd = -1, .memory = data, .bytes = bytes };
	struct build_id id, again;

	if (fd < 0 || io_write_full(fd, data, bytes) < 0)
		abort();
	if (build_id_read_mapped(&file, &id) == 0 && id.n > BUILD_ID_BYTES_MAX)
		abort();
	if (build_id_read(&file, &id) < 0)
		return 0;
	if (!id.n || id.n > BUILD_ID_BYTES_MAX || !memmem(data, bytes, id.bytes, id.n))
		abort();
	if (build_id_read(&memory, &again) < 0 || !build_id_same(&id, &again) ||
	    again.code != id.code)
		abort();
	return 0;
}
