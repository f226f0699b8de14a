/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/symbolize/resolve.h"

#include <errno.h>
#include <sys/stat.h>

#include "shared/elf/elf_call.h"
#include "shared/elf/elf_layout.h"

static struct elf_image make_image(int fd)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return (struct elf_image){ .fd = -1 };
	return (struct elf_image){ .fd = fd, .bytes = (uint64_t)st.st_size };
}

/* Reads the headers of the file to which the offsets refer. Errors as elf_reader_open; -ENODATA. */
static int open_layout(struct resolve *r)
{
	int e;

	if (r->code.fd >= 0) {
		e = elf_reader_open(&r->code, &r->layout);
		if (e == 0 || r->debug.fd < 0)
			return e;
		elf_reader_done(&r->layout);
		r->code.fd = -1;
	}
	if (r->debug.fd < 0)
		return -ENOEXEC;
	e = elf_reader_open(&r->debug, &r->layout);
	return e < 0 ? e : elf_layout_restore(&r->layout);
}

static int read_symbols(struct resolve *r)
{
	static const struct elf_limits limits = { RESOLVE_STRINGS_MAX, RESOLVE_SYMBOLS_MAX };
	const bool split = r->code.fd < 0;
	const struct elf_symbols_options options = {
		.debug = !split && r->debug.fd >= 0 ? &r->debug : NULL,
		.limits = &limits,
		.split = split,
	};

	return elf_symbols_read(split ? &r->debug : &r->code, &options, &r->symbols);
}

static enum unnamed find_reason(const struct resolve *r, int error)
{
	switch (error) {
	case 0:
		if (r->symbols->names.count > 0)
			return UNNAMED_NOT;
		return r->symbols->cut ? UNNAMED_TOO_LARGE : UNNAMED_STRIPPED;
	case -ENODATA:
		return UNNAMED_NO_LAYOUT;
	case -ENOEXEC:
	case -EBADMSG:
		return UNNAMED_BAD_FILE;
	default:
		return UNNAMED_GAVE_UP;
	}
}

/* Prefers the split debug file for source lines. */
static void read_lines(struct resolve *r)
{
	uint64_t base = elf_reader_base(&r->layout);

	if (r->debug.fd >= 0)
		(void)resolve_lines_open(&r->lines, r->debug.fd, base);
	if (r->lines.ranges.count || r->code.fd < 0)
		return;
	resolve_lines_done(&r->lines);
	(void)resolve_lines_open(&r->lines, r->code.fd, base);
}

void resolve_open(struct resolve *r, int code_fd, int debug_fd, bool lines)
{
	int e;

	*r = (struct resolve){ .code = make_image(code_fd), .debug = make_image(debug_fd) };
	e = open_layout(r);
	if (e == 0)
		e = read_symbols(r);
	r->unnamed = find_reason(r, e);
	if (lines && r->layout.segment_count > 0)
		read_lines(r);
}

void resolve_close(struct resolve *r)
{
	resolve_lines_done(&r->lines);
	elf_symbols_free(r->symbols);
	elf_reader_done(&r->layout);
}

static bool has_call(void *context, uint64_t offset)
{
	const struct resolve *r = context;

	return r->code.fd < 0 || elf_call_ends_at(&r->code, offset);
}

/*
 * Returns the name of the function at a place, with the function's first offset; NULL: there is
 * none.
 */
static const char *find_name(struct resolve *r, const struct answer_question *place,
			     uint64_t *ret_start)
{
	if (!r->symbols)
		return NULL;
	if (!place->caller)
		return elf_symbols_find(r->symbols, place->offset, ret_start);
	return elf_symbols_find_caller(r->symbols, place->offset, &(struct elf_code){ has_call, r },
				       ret_start);
}

/*
 * Sets the name of the function at the place; false if there is none. place->offset becomes that of
 * the executed instruction: before a return address, unless the function was entered there.
 */
static bool take_name(struct resolve *r, struct answer_question *place, struct answer *answer)
{
	uint64_t start;
	const char *raw = find_name(r, place, &start);

	if (place->caller && place->offset && !(raw && start == place->offset))
		place->offset--;
	if (!raw)
		return false;
	if (demangle(raw, r->name)) {
		answer->raw = raw;
		answer->places[0].fn = r->name;
	} else {
		answer->places[0].fn = raw;
	}
	return true;
}

void resolve_find(struct resolve *r, struct answer_question place, struct answer *ret_answer)
{
	struct answer answer = { .unnamed = r->unnamed, .n = 1 };
	uint64_t address;

	if (!take_name(r, &place, &answer) && !answer.unnamed)
		answer.unnamed = r->symbols->cut ? UNNAMED_TOO_LARGE : UNNAMED_NO_SYMBOL;
	if (r->lines.dwarf && elf_reader_address(&r->layout, place.offset, &address))
		resolve_lines_find(&r->lines, address, &answer);
	*ret_answer = answer;
}
