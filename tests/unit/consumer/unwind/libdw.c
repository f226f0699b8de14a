/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libdw.c: compares compiled tables with libdw's, an implementation that shares nothing with ours,
 * for the same files: for each row at its first byte, its last and one between, where the frame
 * address, the return address and the frame pointer are. Rows beyond libdw's are the merged
 * paddings; text that it knows and no row covers is a disagreement.
 *
 * libdw [--all] [FILE...]: the given files, else a sample of the system's libraries and programs
 * that has the well-known ones in it, else (--all) every one, those in folders below and those of
 * `elsewhere` included.
 */
#include <dirent.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>

#include "consumer/unwind/compile/unwind_compile.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/unwind/testing/image_testing.h"

#define SAMPLE_FILES 60
#define SAMPLE_BYTES (8u << 20) /* a larger file is left to --all */
#define PRINTED	     20		/* disagreements */

#define RDI 5
#define FP  6
#define SP  7
#define PC  16

static const char *const folders[] = { "/usr/lib/x86_64-linux-gnu", "/usr/bin" };

static const char *const always[] = {
	"/lib64/ld-linux-x86-64.so.2",
	"/lib/x86_64-linux-gnu/libc.so.6",
	"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
	"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
	"/usr/bin/python3.11",
	"/usr/bin/perl",
};

/* Large programs and libraries with folders of their own; patterns. */
static const char *const elsewhere[] = {
	"/usr/sbin/nginx",
	"/usr/lib/postgresql/*/bin/postgres",
	"/usr/lib/jvm/*/lib/server/libjvm.so",
	"/usr/lib/jvm/*/lib/*.so",
	"/usr/local/bin/*",
};

static struct totals {
	unsigned long files, without, rows, compared, beyond, unsupported, disagreements;
} totals;

/* The rule that libdw's answers amount to; false when no rule can express it. */
struct expected {
	bool supported;
	struct unwind_rule rule;
};

static bool fits16(int64_t n)
{
	return n >= INT16_MIN && n <= INT16_MAX;
}

/* Register and offset of an operation that pushes their sum. */
static bool based(const Dwarf_Op *op, uint64_t *reg, int64_t *offset)
{
	if (op->atom == DW_OP_bregx) {
		*reg = op->number;
		*offset = (int64_t)op->number2;
		return true;
	}
	*reg = op->atom - DW_OP_breg0;
	*offset = (int64_t)op->number;
	return op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31;
}

static bool expect_plt(const Dwarf_Op *ops, size_t count, struct unwind_rule *rule)
{
	static const uint8_t atoms[] = { DW_OP_breg7, DW_OP_breg16, DW_OP_lit15, DW_OP_and, 0,
					 DW_OP_ge,    DW_OP_lit3,   DW_OP_shl,	 DW_OP_plus };

	if (count != ARRAY_SIZE(atoms))
		return false;
	for (size_t i = 0; i < count; i++)
		if (atoms[i] && ops[i].atom != atoms[i])
			return false;
	rule->cfa = UNWIND_CFA_PLT;
	rule->cfa_offset = UNWIND_HALVES(ops[0].number, ops[4].atom - DW_OP_lit0);
	return ops[1].number == 0 && ops[4].atom >= DW_OP_lit0 && ops[4].atom <= DW_OP_lit16;
}

static bool expect_cfa(const Dwarf_Op *ops, size_t count, struct unwind_rule *rule)
{
	int64_t offset, more;
	uint64_t reg;

	if (count == 0 || expect_plt(ops, count, rule))
		return count > 0;
	if (!based(&ops[0], &reg, &offset) || (reg != SP && reg != FP))
		return false;
	if (count == 1) {
		rule->cfa = reg == SP ? UNWIND_CFA_SP : UNWIND_CFA_FP;
		rule->cfa_offset = (int32_t)offset;
		return offset == (int32_t)offset;
	}
	more = count == 3 ? (int64_t)ops[2].number : 0;
	if (count > 3 || ops[1].atom != DW_OP_deref ||
	    (count == 3 && ops[2].atom != DW_OP_plus_uconst) || !fits16(offset) || !fits16(more))
		return false;
	rule->cfa = reg == SP ? UNWIND_CFA_SP_MEMORY : UNWIND_CFA_FP_MEMORY;
	rule->cfa_offset = UNWIND_HALVES(offset, more);
	return true;
}

enum where { SAME, UNDEFINED, AT_CFA, AT_FP, AT_SP, IS_CFA, IN_RDI, ELSEWHERE };

/* Where register `reg` is, by libdw. */
static enum where locate(Dwarf_Frame *frame, int reg, int64_t *offset)
{
	Dwarf_Op memory[3], *ops = NULL;
	size_t count = 0;
	uint64_t base;

	if (dwarf_frame_register(frame, reg, memory, &ops, &count) < 0)
		return ELSEWHERE;
	*offset = 0;
	if (count == 0)
		return ops ? UNDEFINED : SAME;
	if (ops[0].atom == DW_OP_regx && ops[0].number == RDI && count == 1)
		return IN_RDI;
	if (ops[0].atom != DW_OP_call_frame_cfa)
		return ELSEWHERE;
	if (count == 1)
		return AT_CFA;
	if (ops[1].atom == DW_OP_stack_value)
		return IS_CFA;
	if (ops[1].atom == DW_OP_plus_uconst) {
		*offset = (int64_t)ops[1].number;
		return count == 2 ? AT_CFA : ELSEWHERE;
	}
	if (count != 2 || !based(&ops[1], &base, offset) || (base != SP && base != FP))
		return ELSEWHERE;
	return base == SP ? AT_SP : AT_FP;
}

static bool in_context(const struct unwind_rule *rule, int64_t offset, int behind)
{
	return rule->cfa == UNWIND_CFA_SP_MEMORY && UNWIND_HIGH(rule->cfa_offset) == 0 &&
	       offset == UNWIND_LOW(rule->cfa_offset) + behind;
}

static unsigned int expect_fp(Dwarf_Frame *frame, struct unwind_rule *rule)
{
	int64_t offset;
	enum where where = locate(frame, FP, &offset);

	if (where == SAME)
		return UNWIND_FP_SAME;
	if ((where != AT_CFA && where != AT_FP && where != AT_SP) || !fits16(offset))
		return UNWIND_FP_UNKNOWN;
	rule->fp_offset = (int16_t)offset;
	return where == AT_CFA ? UNWIND_FP_CFA : where == AT_FP ? UNWIND_FP_FP : UNWIND_FP_SP;
}

static bool expect_rule(Dwarf_Frame *frame, struct unwind_rule *rule)
{
	Dwarf_Op *ops = NULL;
	int64_t offset;
	size_t count;
	bool signal;
	unsigned int ra, fp;
	enum where where;

	*rule = (struct unwind_rule){ 0 };
	where = locate(frame, PC, &offset);
	if (where == UNDEFINED) {
		rule->cfa = UNWIND_CFA_END;
		return true;
	}
	if (dwarf_frame_cfa(frame, &ops, &count) < 0 || !expect_cfa(ops, count, rule) ||
	    dwarf_frame_info(frame, NULL, NULL, &signal) < 0)
		return false;
	fp = expect_fp(frame, rule);
	if (where == AT_CFA && offset == -8) {
		ra = UNWIND_RA_CFA;
	} else if (where == AT_SP && in_context(rule, offset, 8)) {
		ra = UNWIND_RA_CONTEXT;
	} else if (where == IN_RDI && rule->cfa == UNWIND_CFA_SP && rule->cfa_offset >= 0 &&
		   fp == UNWIND_FP_SAME && !signal) {
		ra = UNWIND_RA_REGISTER;
	} else if (where == AT_CFA && fp == UNWIND_FP_SAME && fits16(offset)) {
		ra = UNWIND_RA_ALONE;
		rule->fp_offset = (int16_t)offset;
	} else {
		return false;
	}
	rule->saved = UNWIND_SAVED(ra, fp) | (signal ? UNWIND_SAVED_EXACT : 0);
	where = locate(frame, SP, &offset);
	return where == IS_CFA || (where == AT_SP && in_context(rule, offset, 0));
}

/* A file while it is compared. */
struct comparison {
	const char *path;
	const struct unwind_table *table;
	const struct unwind_rules *rules;
	Dwarf_CFI *cfi;
};

static void disagree(const struct comparison *c, uint32_t pc, const struct unwind_rule *ours,
		     const struct unwind_rule *theirs)
{
	if (totals.disagreements++ >= PRINTED)
		return;
	printf("%s: at 0x%lx: ours cfa %u %d fp %d saved 0x%x, libdw's %u %d fp %d saved 0x%x\n",
	       c->path, (unsigned long)(c->table->base + pc), ours->cfa, ours->cfa_offset,
	       ours->fp_offset, ours->saved, theirs->cfa, theirs->cfa_offset, theirs->fp_offset,
	       theirs->saved);
}

static void compare_at(const struct comparison *c, uint32_t pc, uint16_t index)
{
	static const struct unwind_rule unsupported = { .cfa = UNWIND_CFA_UNSUPPORTED };
	const struct unwind_rule *ours = &c->rules->rules[index];
	struct unwind_rule theirs = { 0 };
	Dwarf_Frame *frame = NULL;

	if (unwind_table_find(c->table, c->table->base + pc) != index)
		disagree(c, pc, ours, &theirs);
	if (dwarf_cfi_addrframe(c->cfi, c->table->base + pc, &frame) != 0) {
		totals.beyond += index != UNWIND_RULE_NONE;
		return;
	}
	totals.compared++;
	if (!expect_rule(frame, &theirs))
		theirs = unsupported;
	totals.unsupported += index == UNWIND_RULE_UNSUPPORTED;
	if (memcmp(ours, &theirs, sizeof(theirs)) != 0)
		disagree(c, pc, ours, &theirs);
	free(frame);
}

static void compare_rows(const struct comparison *c)
{
	const struct unwind_row *rows = c->table->rows;

	for (uint32_t i = 0; i + 1 < c->table->row_count; i++) {
		uint32_t bytes = rows[i + 1].pc - rows[i].pc;

		compare_at(c, rows[i].pc, rows[i].rule);
		compare_at(c, rows[i].pc + bytes - 1, rows[i].rule);
		compare_at(c, rows[i].pc + (uint32_t)random() % bytes, rows[i].rule);
	}
	totals.rows += c->table->row_count;
}

/* Whether the file's .eh_frame has an entry for some text. */
static bool section_has_entries(Elf *elf, Elf_Scn *section)
{
	const unsigned char *ident = (const unsigned char *)elf_getident(elf, NULL);
	Elf_Data *data = elf_rawdata(section, NULL);
	Dwarf_Off next = 0;
	Dwarf_CFI_Entry entry;

	while (data && dwarf_next_cfi(ident, data, true, next, &next, &entry) == 0)
		if (!dwarf_cfi_cie_p(&entry))
			return true;
	return false;
}

/* Whether it is one of this machine's programs or libraries that has frames in its .eh_frame. */
static bool has_frames(const struct elf_image *image)
{
	Elf *elf = elf_begin(image->fd, ELF_C_READ_MMAP, NULL);
	const Elf64_Ehdr *header = elf ? elf64_getehdr(elf) : NULL;
	Elf_Scn *section = NULL;
	bool found = false;

	while (header && header->e_machine == EM_X86_64 && header->e_type != ET_REL && !found &&
	       (section = elf_nextscn(elf, section))) {
		const Elf64_Shdr *s = elf64_getshdr(section);
		const char *name = s ? elf_strptr(elf, header->e_shstrndx, s->sh_name) : NULL;

		found = name && strcmp(name, ".eh_frame") == 0 && s->sh_type != SHT_NOBITS &&
			section_has_entries(elf, section);
	}
	elf_end(elf);
	return found;
}

/* 0; 1: not for us; -1: a file that libdw reads and we do not. */
static int compare_file(const char *path, const struct elf_image *image, struct unwind_rules *rules)
{
	struct unwind_table t = { 0 };
	struct comparison c = { .path = path, .table = &t, .rules = rules };
	Elf *elf;
	int r;

	r = unwind_compile(image, rules, &t);
	if (r == -ENOEXEC || r == -ENOTSUP || r == -ENODATA) {
		totals.without++;
		if (!has_frames(image))
			return 1;
		printf("%s: has frames that are not read\n", path);
		return -1;
	}
	if (r < 0) {
		printf("%s: %s\n", path, strerror(-r));
		return -1;
	}
	totals.files++;
	elf = elf_begin(image->fd, ELF_C_READ_MMAP, NULL);
	c.cfi = elf ? dwarf_getcfi_elf(elf) : NULL;
	if (c.cfi)
		compare_rows(&c);
	else
		printf("%s: libdw finds nothing\n", path);
	r = c.cfi ? 0 : -1;
	dwarf_cfi_end(c.cfi);
	elf_end(elf);
	unwind_table_done(&t);
	return r;
}

static int compare_path(const char *path, struct unwind_rules *rules, uint64_t max)
{
	struct elf_image image;
	int r;

	r = image_open(path, &image);
	if (r == 0 && image.bytes <= max)
		r = compare_file(path, &image, rules);
	else
		r = 1;
	image_close(&image);
	return r;
}

/* Regular files alone: a link's target is met by its own name. */
static int is_file(const struct dirent *entry)
{
	return entry->d_type == DT_REG;
}

/* A sample of the files of a folder. */
static int compare_sample(const char *folder, struct unwind_rules *rules)
{
	struct dirent **entries = NULL;
	int count = scandir(folder, &entries, is_file, alphasort), bad = 0;
	int step = MAX(count / SAMPLE_FILES, 1);

	for (int i = 0; i < count; i++) {
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
		if (i % step == 0)
			bad |= compare_path(path, rules, SAMPLE_BYTES) < 0;
		free(entries[i]);
	}
	free(entries);
	return bad;
}

static struct unwind_rules all_rules; /* nftw(3) has no argument to pass on */
static int all_bad;

static int compare_one(const char *path, const struct stat *st, int type, struct FTW *unused)
{
	if (type == FTW_F && S_ISREG(st->st_mode))
		all_bad |= compare_path(path, &all_rules, UINT64_MAX) < 0;
	return 0;
}

static int compare_all(void)
{
	glob_t found = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		all_bad |= nftw(folders[i], compare_one, 16, FTW_PHYS) < 0;
	for (size_t i = 0; i < ARRAY_SIZE(elsewhere); i++)
		glob(elsewhere[i], i > 0 ? GLOB_APPEND : 0, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++)
		all_bad |= nftw(found.gl_pathv[i], compare_one, 16, FTW_PHYS) < 0;
	globfree(&found);
	return all_bad;
}

int main(int argc, char **argv)
{
	bool all = argc > 1 && strcmp(argv[1], "--all") == 0;
	struct unwind_rules *rules = &all_rules;
	int bad = 0;

	elf_version(EV_CURRENT);
	if (unwind_rules_init(rules) < 0)
		return 1;
	for (int i = 1 + all; i < argc; i++)
		bad |= compare_path(argv[i], rules, UINT64_MAX) != 0;
	for (size_t i = 0; argc == 1 && i < ARRAY_SIZE(always); i++)
		bad |= compare_path(always[i], rules, UINT64_MAX) < 0;
	for (size_t i = 0; argc == 1 && i < ARRAY_SIZE(folders); i++)
		bad |= compare_sample(folders[i], rules);
	if (all && argc == 2)
		bad |= compare_all();
	printf("files %lu (and %lu without), rows %lu, rules %u, addresses compared %lu "
	       "(unsupported %lu, beyond %lu), disagreements %lu\n",
	       totals.files, totals.without, totals.rows, rules->count, totals.compared,
	       totals.unsupported, totals.beyond, totals.disagreements);
	unwind_rules_done(rules);
	return bad || totals.disagreements > 0 || totals.compared == 0;
}
