/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unpack.h: reads a file and decompresses gzip and zstd, which it detects by the first bytes, not
 * by the name (RFC 1952, RFC 8878). Several compressed parts, one after the other, are read as one.
 * The input is foreign: UNPACK_WINDOW_BYTES bounds the memory, UNPACK_RATIO the output.
 */
#ifndef TROCAR_CTL_EVENTS_UNPACK_H
#define TROCAR_CTL_EVENTS_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define UNPACK_PACKED_BYTES (128u << 10) /* read at a time */
#define UNPACK_WINDOW_LOG   27		 /* of zstd: frames with a larger window are refused */
#define UNPACK_WINDOW_BYTES (1u << UNPACK_WINDOW_LOG)

/*
 * A file that grows by more than UNPACK_RATIO, and to more than UNPACK_FREE_BYTES, is an attack on
 * memory or time: event lines of one session, repeated, grow by 162 times at most (zstd -19
 * --long).
 */
#define UNPACK_RATIO	  1000u
#define UNPACK_FREE_BYTES (64ULL << 20)

enum unpack_form {
	UNPACK_UNKNOWN, /* nothing was read yet */
	UNPACK_PLAIN,
	UNPACK_GZIP,
	UNPACK_ZSTD,
};

struct unpack {
	int fd; /* borrowed */
	enum unpack_form form;
	unsigned char *data; /* as read: [at, bytes) is not consumed yet */
	size_t at, bytes;
	void *stream;	     /* z_stream or ZSTD_DStream */
	uint64_t read_bytes; /* from the descriptor */
	uint64_t given_bytes;
	bool end;     /* of the descriptor */
	bool between; /* no compressed part is unfinished */
};

/* 0 or -ENOMEM. Release with unpack_done. */
int unpack_init(struct unpack *u, int fd);
void unpack_done(struct unpack *u);

/*
 * Reads up to `bytes` bytes, and may block as read(2) does. Returns their number, 0 at the end.
 * -EBADMSG: the file is damaged; -ENODATA: it ends early (for example, because it is still being
 * written); -EFBIG: see UNPACK_RATIO; -ENOMEM, also if its window is larger than
 * UNPACK_WINDOW_BYTES; else the -errno of read(2).
 */
ssize_t unpack_read(struct unpack *u, void *data, size_t bytes);

/* Returns why unpack_read failed, as text for a person. */
const char *unpack_error(int error);

#endif
