/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unpack.h: the bytes of a file as they were before gzip or zstd, identified by its first bytes and
 * not by its name (RFC 1952, RFC 8878). Several compressed parts, one behind the other, are one.
 * What comes is foreign: memory is bounded by UNPACK_WINDOW_BYTES, the output by UNPACK_RATIO.
 */
#ifndef TROCAR_CTL_EVENTS_UNPACK_H
#define TROCAR_CTL_EVENTS_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define UNPACK_PACKED_BYTES (128u << 10) /* read at a time */
#define UNPACK_WINDOW_LOG   27		 /* of zstd: frames that look back further are refused */
#define UNPACK_WINDOW_BYTES (1u << UNPACK_WINDOW_LOG)

/*
 * A file that becomes so many times longer, and has come to UNPACK_FREE_BYTES, is made to fill
 * memory or time: event lines of one session, again and again, become 162 times longer at most
 * (zstd -19 --long).
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
	unsigned char *data; /* as read: [at, bytes) is not taken yet */
	size_t at, bytes;
	void *stream;	     /* z_stream or ZSTD_DStream */
	uint64_t read_bytes; /* from the descriptor */
	uint64_t given_bytes;
	bool end;     /* of the descriptor */
	bool between; /* no compressed part is begun that is not over */
};

/* 0 or -ENOMEM. Release with unpack_done. */
int unpack_init(struct unpack *u, int fd);
void unpack_done(struct unpack *u);

/*
 * As read(2), which it waits as long as: how many bytes came, 0 at the end. -EBADMSG: the file is
 * damaged; -ENODATA: it ends early (as one that is still being written); -EFBIG: see UNPACK_RATIO;
 * -ENOMEM, also where its window is larger than UNPACK_WINDOW_BYTES; else the -errno of read(2).
 */
ssize_t unpack_read(struct unpack *u, void *data, size_t bytes);

/* Why unpack_read failed, for a person. */
const char *unpack_error(int error);

#endif
