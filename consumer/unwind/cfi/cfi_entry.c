/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwind/cfi/cfi_entry.h"

#include "shared/tools/macro.h"

#define USUAL_ENCODING (CFI_PCREL | CFI_SDATA4)

#define ADDRESS_BYTES 8
#define LETTERS_MAX   16 /* of an augmentation string, NUL included */

uint64_t cfi_entry_address(const struct cfi_section *s, const uint8_t *at)
{
	return s->address + (uint64_t)(at - s->data);
}

/*
 * Reads which CIE an FDE refers to. In .eh_frame the id is the distance back, and id 0 marks a CIE;
 * in .debug_frame it is an offset, and all ones mark a CIE. A 64-bit entry in .eh_frame refers to
 * no CIE: readers disagree about its id, and no tool writes such entries.
 */
static void read_id(const struct cfi_section *s, struct cfi_entry *e, bool wide)
{
	uint64_t from = (uint64_t)(e->body.at - s->data);
	uint64_t id = cfi_bytes_word(&e->body, wide ? 8 : 4);

	e->cie = CFI_NO_CIE;
	e->common = id == (!s->debug ? 0 : wide ? UINT64_MAX : UINT32_MAX);
	if (e->common || e->body.bad || (wide && !s->debug))
		return;
	if (s->debug)
		e->cie = id;
	else if (id <= from)
		e->cie = from - id;
}

bool cfi_entry_read(const struct cfi_section *s, size_t at, struct cfi_entry *ret_entry)
{
	struct cfi_bytes b = { .at = s->data + at, .end = s->data + s->bytes };
	uint64_t length = cfi_bytes_word(&b, 4);
	bool wide = length == UINT32_MAX;
	const uint8_t *body;

	if (wide)
		length = cfi_bytes_word(&b, 8);
	body = b.at;
	if (b.bad || !cfi_bytes_skip(&b, length))
		return false;
	*ret_entry = (struct cfi_entry){
		.at = at,
		.next = (size_t)(b.at - s->data),
		.body = { .at = body, .end = b.at },
	};
	read_id(s, ret_entry, wide);
	return true;
}

/* Reads the augmentation data, letter by letter; an unknown letter makes the CIE unusable. */
static void read_augmentation(const struct cfi_section *s, const char *letters, struct cfi_bytes *b,
			      struct cfi_cie *cie)
{
	uint8_t encoding;

	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			cie->encoding = cfi_bytes_u8(b);
			break;
		case 'L':
			cfi_bytes_u8(b);
			break;
		case 'P': /* the personality routine's pointer: only its length is needed */
			encoding = cfi_bytes_u8(b);
			if ((encoding & 0x70) != CFI_ALIGNED)
				encoding &= 0x0f;
			cfi_bytes_pointer(b, encoding & 0x7f, cfi_entry_address(s, b->at));
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B': /* arm64: which key signs; the walk strips the code in any case */
		case 'G': /* arm64: a frame with memory tags */
			break;
		default:
			b->bad = true;
			return;
		}
	}
}

/* Reads the version and the augmentation string; returns the string's letters, or NULL. */
static const char *read_version(struct cfi_bytes *b, uint8_t *ret_version)
{
	const char *letters;
	const uint8_t *end;

	*ret_version = cfi_bytes_u8(b);
	if (*ret_version != 1 && *ret_version != 3 && *ret_version != 4)
		return NULL;
	end = memchr(b->at, 0, MIN(cfi_bytes_left(b), (size_t)LETTERS_MAX));
	if (!end)
		return NULL;
	letters = (const char *)b->at;
	b->at = end + 1;
	if (strcmp(letters, "eh") == 0) { /* GCC 2: a pointer to its exception table */
		cfi_bytes_skip(b, ADDRESS_BYTES);
		letters = "";
	}
	if (*ret_version == 4) {
		if (cfi_bytes_u8(b) != ADDRESS_BYTES || cfi_bytes_u8(b) != 0)
			return NULL; /* other address sizes, or segments */
	}
	return letters;
}

bool cfi_entry_cie(const struct cfi_section *s, uint64_t at, struct cfi_cie *ret_cie)
{
	struct cfi_cie cie = { .at = (size_t)at };
	struct cfi_entry entry;
	const char *letters;
	struct cfi_bytes *b = &entry.body, data;
	uint8_t version;

	if (at >= s->bytes || !cfi_entry_read(s, (size_t)at, &entry) || !entry.common)
		return false;
	letters = read_version(b, &version);
	if (!letters)
		return false;
	cie.code_align = cfi_bytes_uleb(b);
	cie.data_align = cfi_bytes_sleb(b);
	cie.return_register = version == 1 ? cfi_bytes_u8(b) : cfi_bytes_uleb(b);
	if (*letters == 'z') {
		uint64_t bytes = cfi_bytes_uleb(b);

		cie.sized = true;
		data = (struct cfi_bytes){ .at = b->at };
		cfi_bytes_skip(b, bytes);
		data.end = b->at;
		read_augmentation(s, letters + 1, &data, &cie);
		b->bad |= data.bad;
	} else if (*letters) {
		return false;
	}
	cie.program = *b;
	*ret_cie = cie;
	return !b->bad && cie.code_align <= CFI_CODE_ALIGN_MAX;
}

static inline void read_range(struct cfi_bytes *b, uint8_t encoding, uint64_t address,
			      struct cfi_fde *fde)
{
	fde->start = cfi_bytes_pointer(b, encoding, address);
	fde->bytes = cfi_bytes_form(b, encoding);
}

bool cfi_entry_fde(const struct cfi_section *s, const struct cfi_entry *entry,
		   const struct cfi_cie *cie, struct cfi_fde *ret_fde)
{
	uint64_t address = cfi_entry_address(s, entry->body.at);
	struct cfi_bytes b = entry->body;
	struct cfi_fde fde;

	if (cie->encoding == USUAL_ENCODING) /* a constant makes it ten times faster */
		read_range(&b, USUAL_ENCODING, address, &fde);
	else
		read_range(&b, cie->encoding, address, &fde);
	if (cie->sized)
		cfi_bytes_skip(&b, cfi_bytes_uleb(&b));
	fde.program = b;
	*ret_fde = fde;
	return !b.bad && fde.bytes <= UINT64_MAX - fde.start;
}
