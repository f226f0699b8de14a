/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * proto.h: writes the few forms of the Protocol Buffers wire format that profile.proto needs
 * (protobuf.dev/programming-guides/encoding), and a gzip stream for them. A library would be larger
 * than these four forms.
 */
#ifndef TROCAR_CTL_RENDER_PROTO_H
#define TROCAR_CTL_RENDER_PROTO_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

/* A message in memory. */
struct proto {
	uint8_t *data; /* owned; grows */
	size_t bytes, space;
	int error; /* the first error: -ENOMEM */
};

void proto_done(struct proto *p);

/* Forgets the message, keeps the memory. */
void proto_reset(struct proto *p);

/* Append one field. A number 0 and an empty text are read as a missing field. */
void proto_u64(struct proto *p, unsigned int field, uint64_t number);
void proto_bytes(struct proto *p, unsigned int field, const void *data, size_t bytes);
void proto_packed(struct proto *p, unsigned int field, const uint64_t *numbers, size_t n);
void proto_message(struct proto *p, unsigned int field, const struct proto *message);

/* A gzip stream (RFC 1952). */
struct proto_gzip {
	z_stream stream;
	FILE *out;
	int error; /* the first error: -ENOMEM, -EIO */
};

/* 0 or -ENOMEM; in every case release with proto_gzip_done, which also ends the stream. */
int proto_gzip_init(struct proto_gzip *g, FILE *out);
void proto_gzip_put(struct proto_gzip *g, const void *data, size_t bytes);

/* Ends the stream. 0 or the first error. */
int proto_gzip_done(struct proto_gzip *g);

#endif
