/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/proto.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/macro.h"

#define FIRST_BYTES  256u
#define VARINT_BYTES 10 /* 64 bits, seven per byte */
#define WIRE_VARINT  0u
#define WIRE_BYTES   2u
#define GZIP_WINDOW  (15 + 16) /* zlib.h: 16 asks for a gzip header */
#define GZIP_MEMORY  8

void proto_done(struct proto *p)
{
	free(p->data);
	*p = (struct proto){ 0 };
}

void proto_reset(struct proto *p)
{
	p->bytes = 0;
}

static uint8_t *make_room(struct proto *p, size_t bytes)
{
	size_t space = p->space ? p->space : FIRST_BYTES;
	uint8_t *larger;

	while (space - p->bytes < bytes)
		space *= 2;
	if (space != p->space) {
		larger = realloc(p->data, space);
		if (!larger) {
			p->error = -ENOMEM;
			return NULL;
		}
		p->data = larger;
		p->space = space;
	}
	return p->data + p->bytes;
}

static size_t encode_varint(uint64_t number, uint8_t text[VARINT_BYTES])
{
	size_t n = 0;

	for (; number >= 0x80; number >>= 7)
		text[n++] = (uint8_t)(number | 0x80);
	text[n++] = (uint8_t)number;
	return n;
}

static void put_varint(struct proto *p, uint64_t number)
{
	uint8_t *at = make_room(p, VARINT_BYTES);

	if (at)
		p->bytes += encode_varint(number, at);
}

void proto_u64(struct proto *p, unsigned int field, uint64_t number)
{
	if (!number)
		return;
	put_varint(p, (uint64_t)field << 3 | WIRE_VARINT);
	put_varint(p, number);
}

void proto_bytes(struct proto *p, unsigned int field, const void *data, size_t bytes)
{
	uint8_t *at;

	put_varint(p, (uint64_t)field << 3 | WIRE_BYTES);
	put_varint(p, bytes);
	at = make_room(p, bytes);
	if (at && bytes) {
		memcpy(at, data, bytes);
		p->bytes += bytes;
	}
}

void proto_packed(struct proto *p, unsigned int field, const uint64_t *numbers, size_t n)
{
	uint8_t text[VARINT_BYTES];
	size_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += encode_varint(numbers[i], text);
	put_varint(p, (uint64_t)field << 3 | WIRE_BYTES);
	put_varint(p, bytes);
	for (size_t i = 0; i < n; i++)
		put_varint(p, numbers[i]);
}

void proto_message(struct proto *p, unsigned int field, const struct proto *message)
{
	if (message->error)
		p->error = message->error;
	proto_bytes(p, field, message->data, message->bytes);
}

int proto_gzip_init(struct proto_gzip *g, FILE *out)
{
	*g = (struct proto_gzip){ .out = out };
	if (deflateInit2(&g->stream, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		g->error = -ENOMEM;
	return g->error;
}

/* Runs zlib until it has consumed all input, or with Z_FINISH written all output. */
static void pump_gzip(struct proto_gzip *g, int flush)
{
	uint8_t buffer[16384];
	int r;

	do {
		g->stream.next_out = buffer;
		g->stream.avail_out = sizeof(buffer);
		r = deflate(&g->stream, flush);
		if (fwrite(buffer, 1, sizeof(buffer) - g->stream.avail_out, g->out) !=
		    sizeof(buffer) - g->stream.avail_out)
			g->error = -EIO;
	} while (!g->error && (flush == Z_FINISH ? r == Z_OK : !g->stream.avail_out));
}

void proto_gzip_put(struct proto_gzip *g, const void *data, size_t bytes)
{
	const uint8_t *at = data;

	while (bytes && !g->error) {
		size_t n = MIN(bytes, (size_t)1 << 30);

		g->stream.next_in = (z_const Bytef *)at;
		g->stream.avail_in = (uInt)n;
		pump_gzip(g, Z_NO_FLUSH);
		at += n;
		bytes -= n;
	}
}

int proto_gzip_done(struct proto_gzip *g)
{
	if (!g->error)
		pump_gzip(g, Z_FINISH);
	deflateEnd(&g->stream);
	return g->error;
}
