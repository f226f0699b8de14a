/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwind/compile/unwind_entries.h"

#include <errno.h>
#include <string.h>

#include "shared/tools/macro.h"

#define USUAL_BYTES 17 /* length, id, start, bytes, and the length of the augmentation */

void unwind_entries_done(struct unwind_entries *e)
{
	cfi_section_done(&e->section);
}

static bool read_cie(struct unwind_entries *e, uint64_t at, struct unwind_cie *known)
{
	static const struct cfi_state nothing;
	struct cfi_cie *cie = &known->cie;

	if (!cfi_entry_cie(&e->section, at, cie) || cie->return_register != CFI_PC)
		return false;
	/*
	 * The bytes of a CIE count as steps, which limits the cost of reading the same CIEs again
	 * and again.
	 */
	e->program.steps += cfi_bytes_left(&cie->program);
	cfi_program_start(&e->program, &e->section, cie, &nothing, cie->program, 0);
	if (cfi_program_next(&e->program) != 0)
		return false;
	known->initial = e->program.state;
	return true;
}

/* Reads the CIE at `at` into its slot, replacing the one that is there. */
static void learn_cie(struct unwind_entries *e, uint64_t at, struct unwind_cie *known)
{
	known->known = true;
	known->at = at;
	known->good = read_cie(e, at, known);
	known->usual = known->good && !e->section.debug && known->cie.sized &&
		       known->cie.encoding == (CFI_PCREL | CFI_SDATA4);
	known->plain = known->good && unwind_plain_of(&known->cie, &known->initial, &known->start);
}

/*
 * Returns the slot of the CIE at offset `at`. Called twice per FDE; nearly always the slot holds
 * that CIE.
 */
static inline const struct unwind_cie *find_cie(struct unwind_entries *e, uint64_t at)
{
	struct unwind_cie *known = &e->cies[at / 4 % UNWIND_CIE_SLOTS];

	if (__builtin_expect(!known->known || known->at != at, 0))
		learn_cie(e, at, known);
	return known;
}

static inline uint32_t word_at(const uint8_t *at)
{
	uint32_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

/*
 * Reads an FDE of the usual form: of 32 bits, its range as two words, the first relative to itself,
 * and an augmentation of less than 128 bytes. False for any other entry; then *entry is undefined.
 */
static inline bool read_usual(struct unwind_entries *e, size_t at, struct unwind_entry *entry)
{
	const struct cfi_section *s = &e->section;
	const uint8_t *b = s->data + at;
	size_t left = s->bytes - at;
	uint32_t length, back, augmentation;
	const struct unwind_cie *known;

	if (s->debug || left < USUAL_BYTES)
		return false;
	length = word_at(b);
	back = word_at(b + 4);
	augmentation = b[USUAL_BYTES - 1];
	if (length < USUAL_BYTES - 4 || length > left - 4 || back == 0 || back > at + 4 ||
	    augmentation > MIN(length - (USUAL_BYTES - 4), 127u))
		return false;
	known = find_cie(e, at + 4 - back);
	if (!known->usual)
		return false;
	entry->next = at + 4 + length;
	entry->function = true;
	entry->cie = known;
	entry->fde.start = s->address + at + 8 + (uint64_t)(int32_t)word_at(b + 8);
	entry->fde.bytes = (uint64_t)(int32_t)word_at(b + 12);
	entry->fde.program =
		(struct cfi_bytes){ .at = b + USUAL_BYTES + augmentation, .end = b + 4 + length };
	return entry->fde.bytes <= UINT64_MAX - entry->fde.start;
}

int unwind_entries_read(struct unwind_entries *e, size_t at, struct unwind_entry *ret_entry)
{
	struct cfi_entry entry;

	if (__builtin_expect(read_usual(e, at, ret_entry), 1))
		return 0;
	if (!cfi_entry_read(&e->section, at, &entry))
		return -EBADMSG;
	*ret_entry = (struct unwind_entry){ .next = entry.next };
	if (entry.common)
		return 0;
	ret_entry->cie = find_cie(e, entry.cie);
	if (!ret_entry->cie->good)
		ret_entry->loss = CFI_LOSS_BAD_CIE;
	else if (!cfi_entry_fde(&e->section, &entry, &ret_entry->cie->cie, &ret_entry->fde))
		ret_entry->loss = CFI_LOSS_BAD_ENTRY;
	else
		ret_entry->function = true;
	return 0;
}
