/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwind/compile/unwind_compile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/unwind/cfi/cfi_rule.h"
#include "consumer/unwind/compile/unwind_entries.h"
#include "consumer/unwind/compile/unwind_fdes.h"
#include "consumer/unwind/compile/unwind_plain.h"
#include "consumer/unwind/infer/unwind_gaps.h"
#include "shared/elf/elf_reader.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define AHEAD	      8 /* FDEs */
#define ROW_BYTES_MIN 4 /* bytes of call frame information per row: every file seen has more */

/*
 * The sections that a file may have: .eh_frame, and .debug_frame for functions that the first
 * lacks.
 */
#define SECTIONS 2

/* Set in the offset of an FDE of the second section. */
#define IN_SECOND (1u << 31)
_Static_assert(CFI_SECTION_MAX < IN_SECOND, "offsets have no room for a mark");

/* One compilation. It is large, so it is on the heap. */
struct compiler {
	struct elf_reader elf;
	struct unwind_entries sections[SECTIONS];
	struct unwind_entries *entries; /* the section that is being read */
	const Elf64_Phdr *text;		/* the last executable segment found */
	struct unwind_fdes fdes;
	struct unwind_rules *rules;
	uint32_t rules_limit;
	struct unwind_table table;
};

static void compiler_free(struct compiler **c)
{
	if (!*c)
		return;
	unwind_table_done(&(*c)->table);
	unwind_fdes_done(&(*c)->fdes);
	for (size_t i = 0; i < SECTIONS; i++)
		unwind_entries_done(&(*c)->sections[i]);
	elf_reader_done(&(*c)->elf);
	free(*c);
}

static void count_loss(struct compiler *c, enum cfi_loss loss)
{
	c->table.counts.lost[loss]++;
}

/* Returns the executable segment that holds `address`, or NULL. */
static const Elf64_Phdr *find_text(struct compiler *c, uint64_t address)
{
	if (!c->text || address < c->text->p_vaddr ||
	    address - c->text->p_vaddr >= c->text->p_filesz)
		c->text = elf_reader_code(&c->elf, address);
	return c->text;
}

/* Returns the bytes of the FDE's range, clipped to its segment `text`. */
static uint64_t bytes_within(const struct cfi_fde *fde, const Elf64_Phdr *text)
{
	return MIN(fde->bytes, text->p_filesz - (fde->start - text->p_vaddr));
}

/* Adds the FDE at `at` to the list if a table can cover its text. */
static int take_fde(struct compiler *c, size_t at, const struct cfi_fde *fde)
{
	const Elf64_Phdr *text;
	uint64_t start = fde->start - c->table.base;

	if (fde->bytes == 0)
		return 0; /* it covers no text, so nothing is lost */
	text = find_text(c, fde->start);
	if (!text) {
		count_loss(c, CFI_LOSS_NO_TEXT);
		return 0;
	}
	if (start + bytes_within(fde, text) >= UNWIND_SPAN_MAX) {
		count_loss(c, CFI_LOSS_TOO_FAR);
		return 0;
	}
	return unwind_fdes_push(
		&c->fdes, (struct unwind_fde){ .start = (uint32_t)start, .at = (uint32_t)at });
}

/* Returns how many bytes of instructions were run. */
static uint64_t count_steps(const struct compiler *c)
{
	uint64_t steps = 0;

	for (size_t i = 0; i < SECTIONS; i++)
		steps += c->sections[i].program.steps;
	return steps;
}

/* Selects the section of the FDE at `at` for reading. Returns the FDE's offset in it. */
static size_t choose_section(struct compiler *c, uint32_t at)
{
	c->entries = &c->sections[at & IN_SECOND ? 1 : 0];
	return at & ~IN_SECOND;
}

static int collect_fdes(struct compiler *c, uint32_t mark)
{
	struct unwind_entry entry;
	int r;

	choose_section(c, mark);
	for (size_t at = 0; at < c->entries->section.bytes; at = entry.next) {
		r = unwind_entries_read(c->entries, at, &entry);
		if (r == 0 && entry.function)
			r = take_fde(c, at | mark, &entry.fde);
		else if (r == 0 && entry.loss != CFI_LOSS_NONE)
			count_loss(c, entry.loss);
		if (r < 0)
			return r;
		if (count_steps(c) > UNWIND_STEPS_MAX)
			return -ETIME;
	}
	return 0;
}

/* Makes the rule of an unusual state and counts the parts that no rule can describe. */
static int odd_rule(struct compiler *c, bool signal, uint16_t *ret_rule)
{
	struct unwind_rule rule;
	enum cfi_loss loss = cfi_rule_of(&c->entries->program.state, signal, &rule);

	if (loss != CFI_LOSS_NONE)
		count_loss(c, loss);
	if (loss != CFI_LOSS_NONE && loss != CFI_LOSS_FRAME_POINTER) {
		*ret_rule = UNWIND_RULE_UNSUPPORTED;
		return 0;
	}
	return unwind_rules_index(c->rules, rule, c->rules_limit, ret_rule);
}

/* Returns the dictionary's index of the rule for the program's state. */
static inline int rule_of_state(struct compiler *c, bool signal, uint16_t *ret_rule)
{
	struct unwind_rule rule;

	if (!signal && cfi_rule_plain(&c->entries->program.state, &rule))
		return unwind_rules_index(c->rules, rule, c->rules_limit, ret_rule);
	return odd_rule(c, signal, ret_rule);
}

static inline int push_row(struct compiler *c, uint64_t address, uint16_t rule)
{
	c->table.counts.states++;
	return unwind_table_push(&c->table, (uint32_t)(address - c->table.base), rule);
}

/* Runs the prepared program up to address `end` and appends a row for each state. */
static int run_program(struct compiler *c, bool signal, uint64_t end)
{
	struct cfi_program *p = &c->entries->program;
	uint16_t rule = UNWIND_RULE_UNSUPPORTED;
	int more, r;

	do {
		more = cfi_program_next(p);
		if (more < 0) {
			count_loss(c, more == -E2BIG ? CFI_LOSS_DEPTH : CFI_LOSS_BAD_PROGRAM);
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

/* Appends the rows of one FDE, up to address `end`. Nearly every FDE is plain. */
static int run_fde(struct compiler *c, const struct unwind_entry *entry, uint64_t end)
{
	const struct unwind_cie *cie = entry->cie;
	struct cfi_program *p = &c->entries->program;
	struct unwind_plain_text text = {
		.code = entry->fde.program,
		.start = (uint32_t)(entry->fde.start - c->table.base),
		.end = (uint32_t)(end - c->table.base),
	};
	int r = 0;

	c->table.counts.entries++;
	if (cie->plain)
		r = unwind_plain_run(&cie->start, &text, c->rules, c->rules_limit, &c->table,
				     &p->steps);
	if (r != 0)
		return MIN(r, 0);
	cfi_program_start(p, &c->entries->section, &cie->cie, &cie->initial, text.code,
			  entry->fde.start);
	return run_program(c, cie->cie.signal, end);
}

/*
 * Prefetches an FDE: FDEs are not in the order of the text, so the processor cannot predict the
 * next one.
 */
static void prefetch_fde(const struct compiler *c, size_t i)
{
	uint32_t at;

	if (i >= c->fdes.count)
		return;
	at = c->fdes.items[i].at;
	__builtin_prefetch(c->sections[at & IN_SECOND ? 1 : 0].section.data + (at & ~IN_SECOND));
}

/* Reads the FDE of the list's item `i` again, with its range clipped to its segment. */
static int read_again(struct compiler *c, size_t i, struct unwind_entry *ret_entry)
{
	size_t at = choose_section(c, c->fdes.items[i].at);
	int r;

	r = unwind_entries_read(c->entries, at, ret_entry);
	if (r < 0)
		return r;
	if (!ret_entry->function || !find_text(c, ret_entry->fde.start))
		return -EBADMSG; /* it was valid when it was added */
	ret_entry->fde.bytes = bytes_within(&ret_entry->fde, c->text);
	return 0;
}

/* Reads the widest of the FDEs from `i` to before `next`, which all begin at one address. */
static int read_widest(struct compiler *c, size_t i, size_t next, struct unwind_entry *ret_entry)
{
	uint64_t bytes = 0;
	size_t best = i;
	int r;

	for (size_t j = i; next - i > 1 && j < next; j++) {
		r = read_again(c, j, ret_entry);
		if (r < 0)
			return r;
		if (ret_entry->fde.bytes > bytes)
			best = j;
		bytes = MAX(bytes, ret_entry->fde.bytes);
		if (j > i)
			count_loss(c, CFI_LOSS_DUPLICATE);
	}
	return read_again(c, best, ret_entry);
}

/*
 * Returns whether text from `end` of a function to the next one is padding: it is narrow, and the
 * program does not begin there, as musl's does between main and its own function.
 */
static bool is_padding(const struct compiler *c, uint64_t end, uint64_t next)
{
	uint64_t entry = c->elf.header.e_entry;

	return next - end < UNWIND_GAP_BYTES && (entry < end || entry >= next);
}

/*
 * Appends rows for the widest of the FDEs from `i` to before `next`, which all begin at one
 * address. Its text ends at the latest where the next function begins; a wide gap between them gets
 * a row of its own.
 */
static int run_group(struct compiler *c, size_t i, size_t next)
{
	struct unwind_entry entry;
	uint64_t end, limit;
	int r;

	r = read_widest(c, i, next, &entry);
	if (r < 0)
		return r;
	limit = next < c->fdes.count ? c->table.base + c->fdes.items[next].start : UINT64_MAX;
	end = MIN(entry.fde.start + entry.fde.bytes, limit);
	r = run_fde(c, &entry, end);
	if (r < 0 || is_padding(c, end, limit))
		return r;
	return unwind_table_push(&c->table, (uint32_t)(end - c->table.base), UNWIND_RULE_NONE);
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
		prefetch_fde(c, next + AHEAD);
		r = run_group(c, i, next);
		if (r == 0 && count_steps(c) > UNWIND_STEPS_MAX)
			r = -ETIME;
	}
	return r;
}

/* Sets the base of the table: the page that holds the lowest executable address. */
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

/*
 * Reserves approximately as many rows as the table will have; memory that is never written is not
 * used.
 */
static int reserve_rows(struct compiler *c)
{
	size_t rows = (c->sections[0].section.bytes + c->sections[1].section.bytes) / ROW_BYTES_MIN;

	return unwind_table_grow(&c->table, (uint32_t)MIN(rows, (size_t)UNWIND_ROWS_MAX));
}

/*
 * Reads both sections; one is enough. An unreadable .debug_frame does no harm to a file that has
 * .eh_frame.
 */
static int read_sections(struct compiler *c)
{
	int eh, debug;

	eh = cfi_section_read(&c->elf, &c->sections[0].section);
	if (eh < 0 && eh != -ENODATA)
		return eh;
	debug = cfi_section_read_debug(&c->elf, &c->sections[1].section);
	if (debug == -ENODATA)
		return eh;
	if (debug < 0 && debug != -ENOMEM && eh == 0) {
		count_loss(c, CFI_LOSS_DEBUG_FRAME);
		return 0;
	}
	return debug;
}

static int compile_sections(struct compiler *c)
{
	int r;

	r = find_base(c);
	if (r < 0)
		return r;
	r = read_sections(c);
	if (r < 0)
		return r;
	r = collect_fdes(c, 0);
	if (r == 0)
		r = collect_fdes(c, IN_SECOND);
	if (r < 0)
		return r;
	if (c->fdes.count == 0)
		return -ENODATA;
	r = unwind_fdes_sort(&c->fdes);
	if (r < 0)
		return r;
	r = reserve_rows(c);
	if (r < 0)
		return r;
	r = run_all(c);
	if (r < 0)
		return r;
	r = unwind_gaps_fill(&c->elf, c->rules, c->rules_limit, &c->table);
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
	r = compile_sections(c);
	if (r < 0) {
		unwind_rules_rewind(rules, before);
		return r;
	}
	c->table.counts.steps = count_steps(c);
	c->table.counts.rules = rules->count - before;
	*ret_table = c->table;
	c->table = (struct unwind_table){ 0 };
	return 0;
}
