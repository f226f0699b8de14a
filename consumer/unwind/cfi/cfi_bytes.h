/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cfi_bytes.h: a cursor over untrusted bytes. A read past its end returns 0 and sets `bad` for
 * good; a bad cursor is at its end. So a caller may check `bad` once after several reads. Native
 * byte order. Sources: DWARF 5 section 7.6 for LEB128; LSB Core 5.0 section 10.5 for the pointer
 * encodings.
 */
#ifndef TROCAR_CONSUMER_UNWIND_CFI_CFI_BYTES_H
#define TROCAR_CONSUMER_UNWIND_CFI_CFI_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Encodings of pointers: the low four bits are the form, 0x70 is its base. */
#define CFI_ABSOLUTE 0x00
#define CFI_ULEB     0x01
#define CFI_UDATA2   0x02
#define CFI_UDATA4   0x03
#define CFI_UDATA8   0x04
#define CFI_SLEB     0x09
#define CFI_SDATA2   0x0a
#define CFI_SDATA4   0x0b
#define CFI_SDATA8   0x0c
#define CFI_PCREL    0x10
#define CFI_ALIGNED  0x50
#define CFI_INDIRECT 0x80
#define CFI_OMIT     0xff

struct cfi_bytes {
	const uint8_t *at, *end;
	bool bad;
};

static inline size_t cfi_bytes_left(const struct cfi_bytes *b)
{
	return (size_t)(b->end - b->at);
}

static inline void cfi_bytes_spoil(struct cfi_bytes *b)
{
	b->bad = true;
	b->at = b->end;
}

/* Skips `bytes` bytes; returns a pointer to them, or NULL. */
static inline const uint8_t *cfi_bytes_skip(struct cfi_bytes *b, uint64_t bytes)
{
	const uint8_t *from = b->at;

	if (bytes > cfi_bytes_left(b)) {
		cfi_bytes_spoil(b);
		return NULL;
	}
	b->at += bytes;
	return from;
}

static inline uint64_t cfi_bytes_word(struct cfi_bytes *b, size_t bytes)
{
	uint64_t word = 0;

	if (bytes > cfi_bytes_left(b)) {
		cfi_bytes_spoil(b);
		return 0;
	}
	memcpy(&word, b->at, bytes); /* the low part, on little-endian machines only */
	b->at += bytes;
	return word;
}

static inline uint8_t cfi_bytes_u8(struct cfi_bytes *b)
{
	if (__builtin_expect(b->at == b->end, 0)) {
		b->bad = true;
		return 0;
	}
	return *b->at++;
}

/* Like cfi_bytes_word, with sign extension. */
static inline int64_t cfi_bytes_signed(struct cfi_bytes *b, size_t bytes)
{
	unsigned int shift = 64 - 8 * (unsigned int)bytes;

	return (int64_t)(cfi_bytes_word(b, bytes) << shift) >> shift;
}

/* Reads the rest of a number after its first byte, `byte`, which has the continuation bit. */
static inline uint64_t cfi_bytes_uleb_rest(struct cfi_bytes *b, uint8_t byte)
{
	uint64_t value = byte & 0x7f;

	for (unsigned int shift = 7; shift < 64; shift += 7) {
		byte = cfi_bytes_u8(b);
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	cfi_bytes_spoil(b);
	return 0;
}

/* A number with more bytes than 64 bits need is malformed, so an endless LEB128 costs ten bytes. */
static inline uint64_t cfi_bytes_uleb(struct cfi_bytes *b)
{
	uint8_t byte = cfi_bytes_u8(b);

	return __builtin_expect(byte & 0x80, 0) ? cfi_bytes_uleb_rest(b, byte) : byte;
}

static inline int64_t cfi_bytes_sleb(struct cfi_bytes *b)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		uint8_t byte = cfi_bytes_u8(b);

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if ((byte & 0x40) && shift + 7 < 64)
			value |= ~0ULL << (shift + 7);
		return (int64_t)value;
	}
	cfi_bytes_spoil(b);
	return 0;
}

/* Always inlined: with a constant encoding, the compiler drops nearly all of these functions. */
#define CFI_INLINE static inline __attribute__((always_inline))

/*
 * Reads a number of the form in `encoding`, without a base; an unknown form makes the cursor bad.
 */
CFI_INLINE uint64_t cfi_bytes_form(struct cfi_bytes *b, uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case CFI_ABSOLUTE:
	case CFI_UDATA8:
	case CFI_SDATA8:
		return cfi_bytes_word(b, 8);
	case CFI_ULEB:
		return cfi_bytes_uleb(b);
	case CFI_UDATA2:
		return cfi_bytes_word(b, 2);
	case CFI_UDATA4:
		return cfi_bytes_word(b, 4);
	case CFI_SLEB:
		return (uint64_t)cfi_bytes_sleb(b);
	case CFI_SDATA2:
		return (uint64_t)cfi_bytes_signed(b, 2);
	case CFI_SDATA4:
		return (uint64_t)cfi_bytes_signed(b, 4);
	default:
		cfi_bytes_spoil(b);
		return 0;
	}
}

/*
 * Reads an encoded pointer at address `address`. Pointers that are indirect, or relative to text,
 * data or function, make the cursor bad, because no linker writes them for an address of code.
 */
CFI_INLINE uint64_t cfi_bytes_pointer(struct cfi_bytes *b, uint8_t encoding, uint64_t address)
{
	switch (encoding & 0xf0) {
	case 0:
		return cfi_bytes_form(b, encoding);
	case CFI_PCREL:
		return address + cfi_bytes_form(b, encoding);
	case CFI_ALIGNED:
		cfi_bytes_skip(b, -address & 7);
		return cfi_bytes_word(b, 8);
	default:
		cfi_bytes_spoil(b);
		return 0;
	}
}

#endif
