/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/resolve.h"

#include <errno.h>

/* Mapped for reading only: where the file shrinks meanwhile, a SIGBUS ends this process. */
static Elf *open_elf(int fd)
{
	Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);

	if (elf && elf_kind(elf) == ELF_K_ELF)
		return elf;
	elf_end(elf);
	return NULL;
}

static enum unnamed read_symbols(struct resolve *r)
{
	Elf *elf = r->code ? r->code : r->debug;
	int e;

	if (!elf)
		return UNNAMED_BAD_FILE;
	e = resolve_symbols_segments(&r->symbols, elf, !r->code);
	if (e < 0)
		return !r->code ? UNNAMED_NO_LAYOUT : UNNAMED_BAD_FILE;
	e = resolve_symbols_read(&r->symbols, r->code, r->debug);
	if (e < 0)
		return UNNAMED_GAVE_UP;
	return r->symbols.count ? UNNAMED_NOT : UNNAMED_STRIPPED;
}

/* What was split off is the better one to ask for lines. */
static void read_lines(struct resolve *r)
{
	uint64_t base = resolve_symbols_base(r->code ? r->code : r->debug);

	if (r->debug)
		(void)resolve_lines_open(&r->lines, r->debug,
					 base - resolve_symbols_base(r->debug));
	if (r->lines.ranges.count || !r->code)
		return;
	resolve_lines_done(&r->lines);
	(void)resolve_lines_open(&r->lines, r->code, 0);
}

void resolve_open(struct resolve *r, int code_fd, int debug_fd, bool lines)
{
	*r = (struct resolve){ 0 };
	elf_version(EV_CURRENT);
	r->code = open_elf(code_fd);
	r->debug = open_elf(debug_fd);
	r->unnamed = read_symbols(r);
	if (lines && (r->code || r->debug))
		read_lines(r);
}

void resolve_close(struct resolve *r)
{
	resolve_symbols_done(&r->symbols);
	resolve_lines_done(&r->lines);
	elf_end(r->debug);
	elf_end(r->code);
}

void resolve_find(struct resolve *r, uint64_t offset, struct answer *ret_answer)
{
	struct answer answer = { .unnamed = r->unnamed, .n = 1 };
	const char *raw;
	uint64_t address;

	if (!resolve_symbols_address(&r->symbols, offset, &address)) {
		answer.unnamed = answer.unnamed ? answer.unnamed : UNNAMED_NO_SYMBOL;
		*ret_answer = answer;
		return;
	}
	raw = resolve_symbols_find(&r->symbols, address);
	if (raw) {
		bool readable = demangle(raw, r->name);

		answer.raw = readable ? raw : NULL;
		answer.places[0].fn = readable ? r->name : raw;
	} else if (!answer.unnamed) {
		answer.unnamed = UNNAMED_NO_SYMBOL;
	}
	if (r->lines.dwarf)
		resolve_lines_find(&r->lines, address, &answer);
	*ret_answer = answer;
}
