/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/events/unpack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "shared/tools/macro.h"

#define GZIP_WINDOW (15 + 16) /* zlib.h: 16 asks for a gzip header */
#define MAGIC_BYTES 4

int unpack_init(struct unpack *u, int fd)
{
	*u = (struct unpack){ .fd = fd, .data = malloc(UNPACK_PACKED_BYTES), .between = true };
	return u->data ? 0 : -ENOMEM;
}

void unpack_done(struct unpack *u)
{
	if (u->form == UNPACK_GZIP && u->stream) {
		inflateEnd(u->stream);
		free(u->stream);
	}
	if (u->form == UNPACK_ZSTD)
		ZSTD_freeDStream(u->stream);
	u->stream = NULL;
	free(u->data);
	u->data = NULL;
}

/* Reads more bytes after the buffered ones. 1; 0 at the end; -errno. */
static int fill_buffer(struct unpack *u)
{
	ssize_t n;

	if (u->at == u->bytes)
		u->at = u->bytes = 0;
	do
		n = read(u->fd, u->data + u->bytes, UNPACK_PACKED_BYTES - u->bytes);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	u->bytes += (size_t)n;
	u->read_bytes += (size_t)n;
	u->end = !n;
	return n > 0;
}

static bool begins_with(const struct unpack *u, const char *magic, size_t bytes)
{
	return u->bytes - u->at >= bytes && !memcmp(u->data + u->at, magic, bytes);
}

static enum unpack_form tell_form(const struct unpack *u)
{
	if (begins_with(u, "\x1f\x8b\x08", 3))
		return UNPACK_GZIP;
	return begins_with(u, "\x28\xb5\x2f\xfd", MAGIC_BYTES) ? UNPACK_ZSTD : UNPACK_PLAIN;
}

static int begin_stream(struct unpack *u)
{
	if (u->form == UNPACK_ZSTD) {
		u->stream = ZSTD_createDStream();
		if (!u->stream || ZSTD_isError(ZSTD_DCtx_setParameter(
					  u->stream, ZSTD_d_windowLogMax, UNPACK_WINDOW_LOG)))
			return -ENOMEM;
		return 0;
	}
	u->stream = calloc(1, sizeof(z_stream));
	if (!u->stream)
		return -ENOMEM;
	if (inflateInit2((z_stream *)u->stream, GZIP_WINDOW) == Z_OK)
		return 0;
	free(u->stream);
	u->stream = NULL;
	return -ENOMEM;
}

/* Reads until the first bytes identify the format, and makes its decompressor. */
static int begin_file(struct unpack *u)
{
	int r = 1;

	while (r > 0 && u->bytes < MAGIC_BYTES)
		r = fill_buffer(u);
	if (r < 0)
		return r;
	u->form = tell_form(u);
	return u->form == UNPACK_PLAIN ? 0 : begin_stream(u);
}

/*
 * Decompresses from the buffer, at most `bytes`; *ret_given is the number of bytes written. 0, also
 * if that is 0; -EBADMSG, -ENOMEM.
 */
static int inflate_some(struct unpack *u, unsigned char *data, size_t bytes, size_t *ret_given)
{
	z_stream *z = u->stream;
	int r;

	u->between = false;
	z->next_in = u->data + u->at;
	z->avail_in = (uInt)(u->bytes - u->at);
	z->next_out = data;
	z->avail_out = (uInt)MIN(bytes, (size_t)1 << 30);
	r = inflate(z, Z_NO_FLUSH);
	u->at = u->bytes - z->avail_in;
	*ret_given = (size_t)(z->next_out - data);
	if (r == Z_STREAM_END) {
		u->between = true;
		return inflateReset(z) == Z_OK ? 0 : -EBADMSG;
	}
	if (r == Z_MEM_ERROR)
		return -ENOMEM;
	return r == Z_OK || r == Z_BUF_ERROR ? 0 : -EBADMSG;
}

/* As inflate_some, for zstd. */
static int decompress_some(struct unpack *u, unsigned char *data, size_t bytes, size_t *ret_given)
{
	ZSTD_inBuffer in = { u->data, u->bytes, u->at };
	ZSTD_outBuffer out = { data, bytes, 0 };
	size_t r = ZSTD_decompressStream(u->stream, &out, &in);
	ZSTD_ErrorCode code = ZSTD_getErrorCode(r);

	u->at = in.pos;
	*ret_given = out.pos;
	if (code == ZSTD_error_frameParameter_windowTooLarge ||
	    code == ZSTD_error_memory_allocation)
		return -ENOMEM;
	if (code != ZSTD_error_no_error)
		return -EBADMSG;
	u->between = r == 0;
	return 0;
}

static int unpack_some(struct unpack *u, void *data, size_t bytes, size_t *ret_given)
{
	int r;

	/* There may be zeroes between two parts, for example of a file from a tape. */
	while (u->between && u->at < u->bytes && !u->data[u->at])
		u->at++;
	if (u->between && u->at == u->bytes)
		return 0;
	r = u->form == UNPACK_GZIP ? inflate_some(u, data, bytes, ret_given)
				   : decompress_some(u, data, bytes, ret_given);
	if (r < 0)
		return r;
	u->given_bytes += *ret_given;
	return u->given_bytes > UNPACK_FREE_BYTES && u->given_bytes / UNPACK_RATIO > u->read_bytes
		       ? -EFBIG
		       : 0;
}

static ssize_t read_packed(struct unpack *u, void *data, size_t bytes)
{
	for (;;) {
		size_t given = 0;
		int r = 1;

		/* Returns the data inside the stream before it reads more. */
		r = unpack_some(u, data, bytes, &given);
		if (r < 0)
			return r;
		if (given)
			return (ssize_t)given;
		if (u->at < u->bytes)
			continue;
		if (u->end)
			return u->between ? 0 : -ENODATA;
		r = fill_buffer(u);
		if (r < 0)
			return r;
	}
}

/* Returns the bytes read to identify the form, then reads directly from the file. */
static ssize_t read_plain(struct unpack *u, void *data, size_t bytes)
{
	size_t there = MIN(bytes, u->bytes - u->at);
	ssize_t n;

	if (there) {
		memcpy(data, u->data + u->at, there);
		u->at += there;
		return (ssize_t)there;
	}
	if (u->end)
		return 0;
	do
		n = read(u->fd, data, bytes);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	u->read_bytes += (size_t)n;
	u->end = !n;
	return n;
}

ssize_t unpack_read(struct unpack *u, void *data, size_t bytes)
{
	if (u->form == UNPACK_UNKNOWN) {
		int r = begin_file(u);

		if (r < 0)
			return r;
	}
	return u->form == UNPACK_PLAIN ? read_plain(u, data, bytes) : read_packed(u, data, bytes);
}

const char *unpack_error(int error)
{
	switch (error) {
	case -EBADMSG:
		return "the compressed data are damaged";
	case -ENODATA:
		return "the compressed data end early: is it still being written?";
	case -EFBIG:
		return "the compressed data become more than a thousand times longer: event lines "
		       "do not";
	default:
		return strerror(-error);
	}
}
