/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * build_id.h: which build an ELF file is of, and what it is good for, read by few small pread(2)
 * under walls: files of others are asked here before any library sees them. Sources: elf(5), gABI
 * chapters 4 and 5, include/uapi/linux/elf.h for the notes. Fuzzed (tests/fuzz/ctl/build_id.c).
 */
#ifndef TROCAR_CTL_BUILD_ID_H
#define TROCAR_CTL_BUILD_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUILD_ID_BYTES_MAX    64
#define BUILD_ID_NOTE_MAX     (64u << 10) /* bytes of one part with notes that are looked through */
#define BUILD_ID_NOTES_MAX    64	  /* parts with notes */
#define BUILD_ID_SEGMENTS_MAX 256
#define BUILD_ID_SECTIONS_MAX 65536

struct build_id {
	uint8_t bytes[BUILD_ID_BYTES_MAX];
	uint8_t n;
	bool code; /* it has instructions; false: what was split off such a file */
};

/*
 * Reads the GNU build-id of the regular file `fd`, of 32 or 64 bits and this machine's byte order.
 * 0 with ret_id->n at least 1; -ENOEXEC (not such a file); -EBADMSG (headers that contradict
 * themselves or exceed a wall); -ENODATA (it has none); -errno of pread(2).
 */
int build_id_read(int fd, struct build_id *ret_id);

/* The same bytes as hex digits of an event line? */
bool build_id_is(const struct build_id *id, const char *hex, size_t digits);

#endif
