/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwind/unwind_compile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/symbols/elf_reader.h"
#include "consumer/unwind/cfi_entry.h"
#include "consumer/unwind/cfi_program.h"
#include "consumer/unwind/cfi_rule.h"
#include "consumer/unwind/cfi_section.h"
#include "consumer/unwind/unwind_fdes.h"
#include "shared/cleanup.h"
#include "shared/macro.h"

#define CIE_SLOTS 256 /* CIEs kept read, by their place; a power of two */

/* A CIE that was read, good or not, and the state behind its instructions. */
struct known_cie {
	bool known, good;
	uint64_t at;
	struct cfi_cie cie;
	struct cfi_state initial;
};

/* One compilation. Large: on the heap. */
struct compiler {
	struct elf_reader elf;
	struct cfi_section section;
	const Elf64_Phdr *text; /* the executable segment met last */
	struct unwind_fdes fdes;
	struct unwind_rules *rules;
	uint32_t rules_limit;
	struct unwind_table table;
	struct cfi_program program;
	struct known_cie cies[CIE_SLOTS];
};

static void compiler_free(struct compiler **c)
{
	if (!*c)
		return;
	unwind_table_done(&(*c)->table);
	unwind_fdes_done(&(*c)->fdes);
	cfi_section_done(&(*c)->section);
	elf_reader_done(&(*c)->elf);
	free(*c);
}

static void lose(struct compiler *c, enum cfi_loss loss)
{
	c->table.counts.lost[loss]++;
}

static bool read_cie(struct compiler *c, uint64_t at, struct known_cie *known)
{
	static const struct cfi_state nothing;
	struct cfi_cie *cie = &known->cie;

	if (!cfi_entry_cie(&c->section, at, cie) || cie->return_register != CFI_PC)
		return false;
	/* Its bytes count as steps, so that CIEs read again and again cannot cost without end. */
	c->program.steps += cfi_bytes_left(&cie->program);
	cfi_program_start(&c->program, &c->section, cie, &nothing, cie->program, 0);
	if (cfi_program_next(&c->program) != 0)
		return false;
	known->initial = c->program.state;
	return true;
}

/* Reads the CIE at `at` into its slot, in the place of the one that is there. */
static void learn_cie(struct compiler *c, uint64_t at, struct known_cie *known)
{
	known->good = read_cie(c, at, known);
	known->known = true;
	known->at = at;
}

/* The CIE at offset `at`, or NULL. Asked for twice per FDE: nearly always it is there. */
static inline const struct known_cie *find_cie(struct compiler *c, uint64_t at)
{
	struct known_cie *known = &c->cies[at / 4 % CIE_SLOTS];

	if (!known->known || known->at != at)
		learn_cie(c, at, known);
	return known->good ? known : NULL;
}

/* The executable segment that holds `address`, or NULL. */
static const Elf64_Phdr *find_text(struct compiler *c, uint64_t address)
{
	if (!c->text || address < c->text->p_vaddr ||
	    address - c->text->p_vaddr >= c->text->p_filesz)
		c->text = elf_reader_code(&c->elf, address);
	return c->text;
}

/* Takes an FDE into the list, its range cut to its segment. */
static int take_fde(struct compiler *c, const struct cfi_entry *entry)
{
	const struct known_cie *known = find_cie(c, entry->cie);
	const Elf64_Phdr *text;
	struct cfi_fde fde;
	uint64_t bytes;

	if (!known) {
		lose(c, CFI_LOSS_BAD_CIE);
		return 0;
	}
	if (!cfi_entry_fde(&c->section, entry, &known->cie, &fde)) {
		lose(c, CFI_LOSS_BAD_ENTRY);
		return 0;
	}
	if (fde.bytes == 0)
		return 0; /* of no text: nothing is lost */
	text = find_text(c, fde.start);
	if (!text) {
		lose(c, CFI_LOSS_NO_TEXT);
		return 0;
	}
	bytes = MIN(fde.bytes, text->p_filesz - (fde.start - text->p_vaddr));
	if (fde.start - c->table.base + bytes >= UNWIND_SPAN_MAX) {
		lose(c, CFI_LOSS_TOO_FAR);
		return 0;
	}
	return unwind_fdes_push(&c->fdes,
				(struct unwind_fde){
					.start = (uint32_t)(fde.start - c->table.base),
					.bytes = (uint32_t)bytes,
					.cie = (uint32_t)entry->cie,
					.code = (uint32_t)(fde.program.at - c->section.data),
					.code_bytes = (uint32_t)cfi_bytes_left(&fde.program),
				});
}

static int collect(struct compiler *c)
{
	struct cfi_entry entry;
	int r;

	for (size_t at = 0; at < c->section.bytes; at = entry.next) {
		if (!cfi_entry_read(&c->section, at, &entry))
			return -EBADMSG;
		if (entry.common)
			continue;
		r = take_fde(c, &entry);
		if (r < 0)
			return r;
		if (c->program.steps > UNWIND_STEPS_MAX)
			return -ETIME;
	}
	return 0;
}

/* The dictionary's index of `rule`. Nearly every one is there already. */
static inline int index_of(struct compiler *c, struct unwind_rule rule, uint16_t *ret_rule)
{
	uint16_t slot = c->rules->slots[unwind_rules_slot(c->rules, rule)];

	if (slot == 0)
		return unwind_rules_add(c->rules, rule, c->rules_limit, ret_rule);
	*ret_rule = slot - 1;
	return 0;
}

/* What no rule can say is counted. */
static int odd_rule(struct compiler *c, bool signal, uint16_t *ret_rule)
{
	struct unwind_rule rule;
	enum cfi_loss loss = cfi_rule_of(&c->program.state, signal, &rule);

	if (loss != CFI_LOSS_NONE)
		lose(c, loss);
	if (loss != CFI_LOSS_NONE && loss != CFI_LOSS_FRAME_POINTER) {
		*ret_rule = UNWIND_RULE_UNSUPPORTED;
		return 0;
	}
	return index_of(c, rule, ret_rule);
}

/* The dictionary's index of the program's state. */
static inline int rule_of_state(struct compiler *c, bool signal, uint16_t *ret_rule)
{
	struct unwind_rule rule;

	if (!signal && cfi_rule_plain(&c->program.state, &rule))
		return index_of(c, rule, ret_rule);
	return odd_rule(c, signal, ret_rule);
}

static inline int push_row(struct compiler *c, uint64_t address, uint16_t rule)
{
	c->table.counts.states++;
	return unwind_table_push(&c->table, (uint32_t)(address - c->table.base), rule);
}

/* Runs the prepared program, a row for each state, up to address `end`. */
static int run_program(struct compiler *c, bool signal, uint64_t end)
{
	struct cfi_program *p = &c->program;
	uint16_t rule = UNWIND_RULE_UNSUPPORTED;
	int more, r;

	do {
		more = cfi_program_next(p);
		if (more < 0) {
			lose(c, more == -E2BIG ? CFI_LOSS_DEPTH : CFI_LOSS_BAD_PROGRAM);
			return push_row(c, p->from, UNWIND_RULE_UNSUPPORTED);
		}
		if (p->changed) {
			r = rule_of_state(c, signal, &rule);
			if (r < 0)
				return r;
			r = push_row(c, p->from, rule);
			if (r < 0)
				return r;
			p->changed = false;
		}
	} while (more && p->to < end);
	return 0;
}

static int run_fde(struct compiler *c, const struct unwind_fde *fde, uint32_t end)
{
	const struct known_cie *known = find_cie(c, fde->cie);
	const uint8_t *code = c->section.data + fde->code;

	if (!known)
		return -EBADMSG; /* it was good when the FDE was taken */
	c->table.counts.entries++;
	cfi_program_start(&c->program, &c->section, &known->cie, &known->initial,
			  (struct cfi_bytes){ .at = code, .end = code + fde->code_bytes },
			  c->table.base + fde->start);
	return run_program(c, known->cie.signal, c->table.base + end);
}

/* Rows for the FDEs from `i` on that begin at one address: for the widest. Its text ends at the
 * latest where the next function begins, and text without any between them is marked.
 */
static int run_group(struct compiler *c, size_t i, size_t next)
{
	const struct unwind_fde *fdes = c->fdes.items, *best = &fdes[i];
	uint32_t end, limit;
	int r;

	for (size_t j = i + 1; j < next; j++) {
		if (fdes[j].bytes > best->bytes)
			best = &fdes[j];
		lose(c, CFI_LOSS_DUPLICATE);
	}
	limit = next < c->fdes.count ? fdes[next].start : UINT32_MAX;
	end = MIN(best->start + best->bytes, limit);
	r = run_fde(c, best, end);
	if (r < 0 || limit - end < UNWIND_GAP_BYTES)
		return r;
	return unwind_table_push(&c->table, end, UNWIND_RULE_NONE);
}

static int run_all(struct compiler *c)
{
	size_t next;
	int r = 0;

	if (c->fdes.items[0].start > 0)
		r = unwind_table_push(&c->table, 0, UNWIND_RULE_NONE);
	for (size_t i = 0; i < c->fdes.count && r == 0; i = next) {
		for (next = i + 1; next < c->fdes.count; next++)
			if (c->fdes.items[next].start != c->fdes.items[i].start)
				break;
		r = run_group(c, i, next);
		if (r == 0 && c->program.steps > UNWIND_STEPS_MAX)
			r = -ETIME;
	}
	return r;
}

/* Rows count from the page that holds the lowest executable address on. */
static int find_base(struct compiler *c)
{
	uint64_t lowest = UINT64_MAX;

	if (!c->elf.wide || c->elf.header.e_machine != EM_X86_64)
		return -ENOTSUP;
	for (size_t i = 0; i < c->elf.segment_count; i++) {
		const Elf64_Phdr *p = &c->elf.segments[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_X))
			lowest = MIN(lowest, p->p_vaddr);
	}
	c->table.base = lowest & ~(uint64_t)(UNWIND_PAGE_BYTES - 1);
	return lowest == UINT64_MAX ? -ENODATA : 0;
}

static int compile(struct compiler *c)
{
	int r;

	r = find_base(c);
	if (r < 0)
		return r;
	r = cfi_section_read(&c->elf, &c->section);
	if (r < 0)
		return r;
	r = collect(c);
	if (r < 0)
		return r;
	if (c->fdes.count == 0)
		return -ENODATA;
	r = unwind_fdes_sort(&c->fdes);
	if (r < 0)
		return r;
	r = run_all(c);
	if (r < 0)
		return r;
	return unwind_table_finish(&c->table);
}

int unwind_compile(const struct elf_image *image, struct unwind_rules *rules,
		   struct unwind_table *ret_table)
{
	_cleanup_(compiler_free) struct compiler *c = calloc(1, sizeof(*c));
	uint32_t before = rules->count;
	int r;

	if (!c)
		return -ENOMEM;
	c->rules = rules;
	c->rules_limit = before + UNWIND_FILE_RULES_MAX;
	r = elf_reader_open(image, &c->elf);
	if (r < 0)
		return r;
	r = compile(c);
	if (r < 0) {
		unwind_rules_rewind(rules, before);
		return r;
	}
	c->table.counts.steps = c->program.steps;
	c->table.counts.rules = rules->count - before;
	*ret_table = c->table;
	c->table = (struct unwind_table){ 0 };
	return 0;
}
