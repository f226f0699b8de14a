/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwind/infer/unwind_gaps.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/unwind/infer/unwind_scan.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define CALLS_BYTES  (4u << 20)	 /* limit of text that is searched for calls */
#define SYMBOL_BYTES (16u << 20) /* limit of a symbol table */

/* Text without rows: the part of a gap that is in one segment. */
struct gap {
	const Elf64_Phdr *segment;
	uint32_t pc, end;
};

struct filler {
	struct elf_reader *elf;
	struct unwind_rules *rules;
	uint32_t limit;
	const struct unwind_table *from;
	struct unwind_table to;
	uint64_t bytes;	     /* of all gaps */
	bool entry;	     /* the file's entry point is in a gap */
	uint32_t *functions; /* owned */
	size_t function_count;
};

static void filler_done(struct filler *f)
{
	free(f->functions);
	unwind_table_done(&f->to);
}

/* Returns the end of the last executable segment, as a pc. */
static uint32_t end_of_text(const struct filler *f)
{
	uint64_t end = 0;

	for (size_t i = 0; i < f->elf->segment_count; i++) {
		const Elf64_Phdr *p = &f->elf->segments[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_X) && p->p_vaddr >= f->from->base &&
		    p->p_filesz < UNWIND_SPAN_MAX &&
		    p->p_vaddr - f->from->base < UNWIND_SPAN_MAX - p->p_filesz)
			end = MAX(end, p->p_vaddr - f->from->base + p->p_filesz);
	}
	return (uint32_t)end;
}

/* Finds the first part of [pc, end) that is text of a segment; false when there is none. */
static bool find_gap(const struct filler *f, uint32_t pc, uint32_t end, struct gap *ret_gap)
{
	struct gap best = { .pc = UINT32_MAX };

	for (size_t i = 0; i < f->elf->segment_count; i++) {
		const Elf64_Phdr *p = &f->elf->segments[i];
		uint64_t start = p->p_vaddr - f->from->base, stop = start + p->p_filesz;

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || p->p_vaddr < f->from->base ||
		    stop < start || stop <= pc || MAX(start, pc) >= MIN(best.pc, end))
			continue;
		best = (struct gap){ .segment = p,
				     .pc = (uint32_t)MAX(start, (uint64_t)pc),
				     .end = (uint32_t)MIN(stop, (uint64_t)end) };
	}
	*ret_gap = best;
	return best.segment != NULL;
}

/* Returns where the row after row `i` begins; after the last row, the end of the text. */
static uint32_t row_end(const struct filler *f, uint32_t i)
{
	return i + 1 < f->from->row_count ? f->from->rows[i + 1].pc
					  : MAX(end_of_text(f), f->from->rows[i].pc);
}

/*
 * Whether the file's entry point is in the gap and starts a program; the entry point of a shared
 * library does not. A program begins by clearing fp, which marks the outermost frame (System V ABI
 * AMD64 section 3.4.1).
 */
static bool has_entry(const struct filler *f, const struct gap *gap)
{
	static const uint8_t clear[] = { 0x31, 0xed }, clear_wide[] = { 0x48, 0x31, 0xed };
	uint64_t entry = f->elf->header.e_entry, at = entry - gap->segment->p_vaddr;
	uint8_t code[sizeof(clear_wide)];

	if (entry - f->from->base < gap->pc || entry - f->from->base >= gap->end ||
	    elf_reader_at(f->elf->image, gap->segment->p_offset + at, code, sizeof(code)) < 0)
		return false;
	return memcmp(code, clear, sizeof(clear)) == 0 ||
	       memcmp(code, clear_wide, sizeof(clear_wide)) == 0;
}

/* Reserves space for `count` more functions. */
static int grow_functions(struct filler *f, size_t count)
{
	uint32_t *more = reallocarray(f->functions, f->function_count + count, sizeof(*more));

	if (!more)
		return -ENOMEM;
	f->functions = more;
	return 0;
}

/*
 * Reads the functions of one symbol table; none when the file lacks the table or it is malformed.
 */
static int read_functions(struct filler *f, const char *name)
{
	_cleanup_free_ uint8_t *data = NULL;
	const Elf64_Shdr *section;
	const Elf64_Sym *symbols;
	size_t count;
	int r;

	r = elf_reader_find(f->elf, name, &section);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	count = section->sh_size / sizeof(*symbols);
	r = elf_reader_content(f->elf, section, SYMBOL_BYTES, &data);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	r = grow_functions(f, count + 1);
	if (r < 0)
		return r;
	symbols = (const Elf64_Sym *)data;
	for (size_t i = 0; i < count; i++) {
		uint64_t pc = symbols[i].st_value - f->from->base;

		if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC && pc < UNWIND_SPAN_MAX)
			f->functions[f->function_count++] = (uint32_t)pc;
	}
	return 0;
}

/* Calls `each` for every gap. */
static int for_gaps(struct filler *f, int (*each)(struct filler *f, const struct gap *gap))
{
	struct gap gap;
	int r = 0;

	for (uint32_t i = 0; i < f->from->row_count && r == 0; i++) {
		uint32_t pc = f->from->rows[i].pc, end = row_end(f, i);

		if (f->from->rows[i].rule != UNWIND_RULE_NONE)
			continue;
		for (; r == 0 && find_gap(f, pc, end, &gap); pc = gap.end)
			r = each(f, &gap);
	}
	return r;
}

/* Reads the text of a gap, which the caller frees. */
static int read_text(const struct filler *f, const struct gap *gap, uint8_t **ret_text)
{
	_cleanup_free_ uint8_t *text = malloc(gap->end - gap->pc);
	uint64_t within = f->from->base + gap->pc - gap->segment->p_vaddr;
	int r;

	if (!text)
		return -ENOMEM;
	r = elf_reader_at(f->elf->image, gap->segment->p_offset + within, text, gap->end - gap->pc);
	if (r == 0)
		*ret_text = TAKE_PTR(text);
	return r;
}

/* Adds the functions that a piece of text calls. */
static int note_called(struct filler *f, const struct gap *gap)
{
	struct unwind_scan scan = { .bytes = gap->end - gap->pc, .pc = gap->pc };
	_cleanup_free_ uint8_t *text = NULL;
	int r;

	r = read_text(f, gap, &text);
	if (r == 0)
		r = grow_functions(f, UNWIND_SCAN_TARGETS(scan.bytes));
	if (r < 0)
		return r;
	scan.text = text;
	f->function_count += unwind_scan_targets(&scan, f->functions + f->function_count);
	return 0;
}

/*
 * Adds the functions that the text calls. All text may call functions in a gap; but when the text
 * is longer than CALLS_BYTES only the gaps are searched, and functions called only from elsewhere
 * are missing.
 */
static int find_called(struct filler *f)
{
	struct gap whole;
	uint32_t pc = 0;
	int r = 0;

	if (end_of_text(f) > CALLS_BYTES)
		return for_gaps(f, note_called);
	for (; r == 0 && find_gap(f, pc, CALLS_BYTES, &whole); pc = whole.end)
		r = note_called(f, &whole);
	return r;
}

static int put_rows(struct filler *f, const struct gap *gap)
{
	_cleanup_free_ uint8_t *text = NULL;
	uint64_t entry = f->elf->header.e_entry - f->from->base - gap->pc;
	struct unwind_scan scan = {
		.bytes = gap->end - gap->pc,
		.pc = gap->pc,
		.entry = entry < gap->end - gap->pc ? (uint32_t)entry : UNWIND_SCAN_NONE,
		.functions = f->functions,
		.function_count = f->function_count,
	};
	uint32_t functions = 0;
	int r;

	r = read_text(f, gap, &text);
	if (r < 0)
		return r;
	scan.text = text;
	r = unwind_scan_text(&scan, f->rules, f->limit, &f->to, &functions);
	f->to.counts.followed += functions;
	return r;
}

static int measure_gap(struct filler *f, const struct gap *gap)
{
	f->bytes += gap->end - gap->pc;
	f->entry = f->entry || has_entry(f, gap);
	return 0;
}

/* Makes the rows of one gap, and UNWIND_RULE_NONE for its parts outside segments. */
static int fill_gap(struct filler *f, uint32_t pc, uint32_t end)
{
	struct gap gap;
	int r = 0;

	for (; r == 0 && find_gap(f, pc, end, &gap); pc = gap.end) {
		if (gap.pc > pc)
			r = unwind_table_push(&f->to, pc, UNWIND_RULE_NONE);
		if (r == 0)
			r = put_rows(f, &gap);
	}
	return r < 0 || pc >= end ? r : unwind_table_push(&f->to, pc, UNWIND_RULE_NONE);
}

static int fill_all(struct filler *f)
{
	const struct unwind_row *row = f->from->rows;
	int r;

	for (uint32_t i = 0; i < f->from->row_count; i++, row++) {
		if (row->rule == UNWIND_RULE_NONE)
			r = fill_gap(f, row->pc, row_end(f, i));
		else
			r = unwind_table_push(&f->to, row->pc, row->rule);
		if (r < 0)
			return r;
	}
	return unwind_table_push(&f->to, row_end(f, f->from->row_count - 1), UNWIND_RULE_NONE);
}

int unwind_gaps_fill(struct elf_reader *elf, struct unwind_rules *rules, uint32_t limit,
		     struct unwind_table *table)
{
	_cleanup_(filler_done) struct filler f = { .elf = elf,
						   .rules = rules,
						   .limit = limit,
						   .from = table,
						   .to = { .base = table->base,
							   .counts = table->counts } };
	int r;

	r = for_gaps(&f, measure_gap);
	if (r < 0 || !f.entry || f.bytes > UNWIND_SCAN_MAX)
		return r;
	r = elf_reader_sections(elf);
	if (r == 0)
		r = read_functions(&f, ".dynsym");
	if (r == 0)
		r = read_functions(&f, ".symtab");
	if (r == 0)
		r = find_called(&f);
	if (r == 0)
		r = fill_all(&f);
	if (r < 0)
		return r;
	unwind_table_done(table);
	*table = f.to;
	f.to = (struct unwind_table){ 0 };
	return 0;
}
