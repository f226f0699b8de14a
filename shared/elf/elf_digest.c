/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/elf/elf_digest.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define CHUNK_BYTES   (64u << 10)
#define SEGMENT_BYTES (1u << 20) /* digested per segment: about the code of a C library */

struct digest {
	const struct elf_image *image;
	uint64_t key, value, read;
	uint8_t *chunk; /* owned */
};

static void digest_done(struct digest *d)
{
	free(d->chunk);
}

static uint64_t read_secret(void)
{
	const void *random = (const void *)getauxval(AT_RANDOM); /* 16 bytes */
	uint64_t key = 0;

	if (random)
		memcpy(&key, (const uint8_t *)random + sizeof(key), sizeof(key));
	return key | 1;
}

/* Mixes in one word: xors both halves of its product with the secret. */
static void add_word(struct digest *d, uint64_t word)
{
	__uint128_t product = (__uint128_t)(d->value ^ word ^ 0x9e3779b97f4a7c15ULL) * d->key;

	d->value = ((uint64_t)product ^ (uint64_t)(product >> 64)) + word;
}

static void add_bytes(struct digest *d, const void *data, size_t bytes)
{
	uint64_t word = 0;
	size_t at = 0;

	for (; bytes - at >= sizeof(word); at += sizeof(word)) {
		memcpy(&word, (const uint8_t *)data + at, sizeof(word));
		add_word(d, word);
	}
	word = 0;
	if (at < bytes)
		memcpy(&word, (const uint8_t *)data + at, bytes - at);
	add_word(d, word);
	add_word(d, bytes);
}

static int add_part(struct digest *d, uint64_t offset, uint64_t bytes)
{
	int r = 0;

	if (bytes > ELF_DIGEST_BYTES_MAX - d->read)
		return -EFBIG;
	d->read += bytes;
	if (!d->chunk)
		d->chunk = malloc(CHUNK_BYTES);
	if (!d->chunk)
		return -ENOMEM;
	for (uint64_t at = 0, n; r == 0 && at < bytes; at += n) {
		n = MIN(bytes - at, (uint64_t)CHUNK_BYTES);
		r = elf_reader_at(d->image, offset + at, d->chunk, (size_t)n);
		if (r == 0)
			add_bytes(d, d->chunk, (size_t)n);
	}
	return r;
}

static bool is_of_names(const Elf64_Shdr *s)
{
	return s->sh_type == SHT_SYMTAB || s->sh_type == SHT_DYNSYM || s->sh_type == SHT_STRTAB ||
	       s->sh_type == SHT_RELA || s->sh_type == SHT_REL;
}

static int add_named(struct digest *d, struct elf_reader *e, const char *const *names)
{
	const Elf64_Shdr *s;
	int r = 0;

	for (; r == 0 && *names; names++)
		if (elf_reader_find(e, *names, &s) == 0 && s->sh_type != SHT_NOBITS)
			r = add_part(d, s->sh_offset, s->sh_size);
	return r;
}

static int add_names(struct digest *d, struct elf_reader *e)
{
	static const char *const sections[] = { ".gnu_debuglink", ".gnu_debugdata", ".gopclntab",
						".data.rel.ro.gopclntab", NULL };
	int r = 0;

	for (size_t i = 0; r == 0 && i < e->section_count; i++)
		if (is_of_names(&e->sections[i]))
			r = add_part(d, e->sections[i].sh_offset, e->sections[i].sh_size);
	return r == 0 ? add_named(d, e, sections) : r;
}

/*
 * Adds the call frame information, and the code: unwind rows are inferred from the code if there is
 * no such information.
 */
static int add_rows(struct digest *d, struct elf_reader *e)
{
	static const char *const sections[] = { ".eh_frame", ".debug_frame", NULL };
	int r = add_named(d, e, sections);

	for (size_t i = 0; r == 0 && i < e->segment_count; i++) {
		const Elf64_Phdr *p = &e->segments[i];

		if (p->p_type == PT_GNU_EH_FRAME || (p->p_type == PT_LOAD && p->p_flags & PF_X))
			r = add_part(d, p->p_offset, MIN(p->p_filesz, (uint64_t)SEGMENT_BYTES));
	}
	return r;
}

int elf_digest_read(const struct elf_image *image, enum elf_digest_of of, uint64_t *ret_digest)
{
	_cleanup_(elf_reader_done) struct elf_reader e = { 0 };
	_cleanup_(digest_done) struct digest d = { .image = image, .key = read_secret() };
	int r;

	r = elf_reader_open(image, &e);
	if (r == 0)
		r = elf_reader_sections(&e);
	if (r < 0)
		return r;
	add_word(&d, image->bytes);
	add_bytes(&d, &e.header, sizeof(e.header));
	add_bytes(&d, e.segments, e.segment_count * sizeof(*e.segments));
	add_bytes(&d, e.sections, e.section_count * sizeof(*e.sections));
	r = of == ELF_DIGEST_NAMES ? add_names(&d, &e) : add_rows(&d, &e);
	if (r < 0)
		return r;
	*ret_digest = d.value;
	return 0;
}
