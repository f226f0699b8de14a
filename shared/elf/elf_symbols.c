/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/elf/elf_symbols.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shared/elf/elf_debugdata.h"
#include "shared/elf/elf_extents.h"
#include "shared/elf/elf_gather.h"
#include "shared/elf/elf_go.h"
#include "shared/elf/elf_layout.h"
#include "shared/elf/elf_plt.h"
#include "shared/elf/elf_reader.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

/* The state of one read: the gathered symbols, and references to other files with symbols. */
struct reading {
	struct elf_gather gather;
	struct elf_symbols_options options;
	struct elf_links links;
	bool whole; /* a full symbol table was read: other sources would add no name */
};

static void elf_symbols_freep(struct elf_symbols **s)
{
	elf_symbols_free(*s);
}

static void reading_done(struct reading *in)
{
	elf_gather_done(&in->gather);
}

/*
 * Returns the first section of a type: a valid file has at most one symbol table of each type
 * (gABI).
 */
static const Elf64_Shdr *find_section(const struct elf_reader *e, uint32_t type)
{
	for (size_t i = 0; i < e->section_count; i++)
		if (e->sections[i].sh_type == type)
			return &e->sections[i];
	return NULL;
}

static int read_symtab(struct reading *in)
{
	const Elf64_Shdr *s = find_section(&in->gather.file, SHT_SYMTAB);

	if (!s)
		return 0;
	in->whole = true;
	return elf_gather_symbols(&in->gather, &in->gather.file, s);
}

/*
 * Returns whether `b` has the code sections of `a`, with the same order, addresses and sizes: two
 * programs may have the same build-id. The first segments show how far a file was moved.
 */
static bool is_laid_out_alike(const struct elf_reader *a, const struct elf_reader *b)
{
	uint64_t bias = elf_reader_base(b) - elf_reader_base(a);
	size_t at = 0;

	for (size_t i = 0; i < a->section_count; i++) {
		const Elf64_Shdr *s = &a->sections[i];

		if (!(s->sh_flags & SHF_EXECINSTR))
			continue;
		while (at < b->section_count && (b->sections[at].sh_addr != s->sh_addr + bias ||
						 b->sections[at].sh_size != s->sh_size))
			at++;
		if (at++ == b->section_count)
			return false;
	}
	return true;
}

/* Adds the symbols of another file of the same build. */
static int read_other(struct reading *in, const struct elf_image *image)
{
	_cleanup_(elf_reader_done) struct elf_reader other = { 0 };
	const Elf64_Shdr *s;
	int r;

	r = elf_reader_open(image, &other);
	if (r < 0)
		return r;
	r = elf_reader_sections(&other);
	if (r < 0)
		return r;
	s = is_laid_out_alike(&in->gather.file, &other) ? find_section(&other, SHT_SYMTAB) : NULL;
	if (!s || s->sh_type == SHT_NOBITS)
		return -ENODATA;
	return elf_gather_symbols(&in->gather, &other, s);
}

/* Removes the symbols of a source that failed with `error`. */
static void drop_source(struct elf_gather *g, struct elf_gather_mark mark, int error)
{
	elf_gather_rewind(g, mark);
	g->cut = g->cut || error == -EFBIG;
}

/* Like read_other, but drops all symbols of a broken file: the other sources remain usable. */
static void try_other(struct reading *in, const struct elf_image *image)
{
	struct elf_gather_mark mark = elf_gather_mark(&in->gather);
	int r = read_other(in, image);

	if (r == 0)
		in->whole = true;
	else
		drop_source(&in->gather, mark, r);
}

/*
 * Reads .gnu_debuglink: a file name, a NUL, padding to 4 bytes, the CRC of that file (GDB manual).
 */
static void read_debuglink(struct reading *in)
{
	_cleanup_free_ uint8_t *data = NULL;
	const Elf64_Shdr *s;
	size_t name, crc;

	if (elf_reader_find(&in->gather.file, ".gnu_debuglink", &s) < 0 ||
	    elf_reader_content(&in->gather.file, s, ELF_DEBUGLINK_MAX + 8, &data) < 0)
		return;
	name = strnlen((const char *)data, (size_t)s->sh_size);
	crc = ALIGN_UP(name + 1, 4);
	if (name == 0 || name >= ELF_DEBUGLINK_MAX || crc + sizeof(uint32_t) > s->sh_size ||
	    memchr(data, '/', name))
		return;
	memcpy(in->links.debuglink, data, name + 1);
	memcpy(&in->links.crc, data + crc, sizeof(uint32_t));
}

static int read_debug_file(struct reading *in)
{
	const struct elf_finder *finder = in->options.finder;
	struct elf_image image = { .fd = -1 };

	if (!in->whole && in->options.debug)
		try_other(in, in->options.debug);
	if (in->whole)
		return 0;
	read_debuglink(in);
	if (!finder)
		return 0;
	if (finder->open(finder->context, &in->links, &image) < 0)
		return 0;
	try_other(in, &image);
	cleanup_close(&image.fd);
	return 0;
}

/*
 * Adds the compressed symbol table in the file: Fedora and its derivatives keep one in stripped
 * files.
 */
static int read_debugdata(struct reading *in)
{
	_cleanup_free_ uint8_t *data = NULL;
	const Elf64_Shdr *s;
	size_t bytes;
	int r;

	if (in->whole || elf_reader_find(&in->gather.file, ".gnu_debugdata", &s) < 0)
		return 0;
	r = elf_debugdata_read(&in->gather.file, s, &data, &bytes);
	if (r < 0) {
		in->gather.cut = in->gather.cut || r == -EFBIG;
		return 0;
	}
	try_other(in, &(struct elf_image){ .fd = -1, .memory = data, .bytes = bytes });
	return 0;
}

/*
 * Adds .dynsym, unless .symtab has at least as many symbols. Then .symtab has all of them, because
 * strip(1) removes .symtab only as a whole; reading .dynsym would take half of the time for a large
 * file. Only a .symtab that was thinned by hand or cut at a limit is shorter. .gnu_debugdata omits
 * the symbols of .dynsym.
 */
static int read_dynsym(struct reading *in)
{
	const Elf64_Shdr *s = find_section(&in->gather.file, SHT_DYNSYM);

	if (!s || (find_section(&in->gather.file, SHT_SYMTAB) && s->sh_entsize > 0 &&
		   s->sh_size / s->sh_entsize <= in->gather.symbol_count && !in->gather.cut))
		return 0;
	return elf_gather_symbols(&in->gather, &in->gather.file, s);
}

/* Adds the PLT stubs. Drops all of them if a table is broken: these names are optional. */
static int read_plt(struct reading *in)
{
	struct elf_gather_mark mark = elf_gather_mark(&in->gather);
	int r = elf_plt_read(&in->gather);

	if (r < 0)
		drop_source(&in->gather, mark, r);
	return 0;
}

static int read_go(struct reading *in)
{
	struct elf_gather_mark mark = elf_gather_mark(&in->gather);
	int r = in->whole ? 0 : elf_go_read(&in->gather);

	if (r < 0)
		drop_source(&in->gather, mark, r);
	return 0;
}

/* The sources of names, in the order of the number of names. */
static int (*const sources[])(struct reading *in) = {
	read_symtab, read_debug_file, read_debugdata, read_dynsym, read_plt, read_go,
};

/* Opens the file and reads the headers that the options need. */
static int open_file(struct reading *in, const struct elf_image *image)
{
	struct elf_gather *g = &in->gather;
	int r;

	r = elf_reader_open(image, &g->file);
	/*
	 * The note segments of a debug file may be those of the original file: take no build-id
	 * from them.
	 */
	if (r == 0)
		r = in->options.split ? elf_layout_restore(&g->file)
				      : build_id_find_mapped(&g->file, &in->links.id);
	if (r == 0)
		r = elf_reader_sections(&g->file);
	return r;
}

static int build_names(struct elf_gather *g, struct name_table *ret_names)
{
	const struct name_table_texts texts = {
		.strings = g->strings,
		.bytes = g->string_bytes,
		.parts = 1,
		.kept_max = g->limits.string_bytes,
	};

	return name_table_build(g->entries, g->entry_count, &texts, ret_names);
}

int elf_symbols_read(const struct elf_image *image, const struct elf_symbols_options *options,
		     struct elf_symbols **ret_symbols)
{
	static const struct elf_limits limits = { ELF_STRINGS_MAX, ELF_SYMBOLS_MAX };
	_cleanup_(elf_symbols_freep) struct elf_symbols *s = calloc(1, sizeof(*s));
	_cleanup_(reading_done) struct reading in = { .whole = false };
	int r;

	if (!s)
		return -ENOMEM;
	if (options)
		in.options = *options;
	in.gather.limits = in.options.limits ? *in.options.limits : limits;
	r = open_file(&in, image);
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(sources); i++)
		r = sources[i](&in);
	if (r >= 0 && !in.options.split)
		r = elf_extents_bound(&in.gather);
	if (r >= 0)
		r = build_names(&in.gather, &s->names);
	if (r < 0)
		return r;
	s->id = in.links.id;
	s->cut = in.gather.cut;
	s->whole = in.whole;
	s->links = in.links;
	*ret_symbols = TAKE_PTR(s);
	return 0;
}

void elf_symbols_free(struct elf_symbols *s)
{
	if (!s)
		return;
	name_table_done(&s->names);
	free(s);
}

const char *elf_symbols_after(const struct elf_symbols *s, uint64_t offset)
{
	ptrdiff_t i = offset > UINT32_MAX ? -1 : name_table_after(&s->names, (uint32_t)offset);

	return i < 0 ? NULL : name_table_text(&s->names, (size_t)i);
}

const char *elf_symbols_find(const struct elf_symbols *s, uint64_t offset, uint64_t *ret_start)
{
	ptrdiff_t i = offset > UINT32_MAX ? -1 : name_table_find(&s->names, (uint32_t)offset);

	if (i < 0)
		return NULL;
	*ret_start = s->names.keys[i];
	return name_table_text(&s->names, (size_t)i);
}

const char *elf_symbols_find_caller(const struct elf_symbols *s, uint64_t offset,
				    const struct elf_code *code, uint64_t *ret_start)
{
	uint64_t start, start_before;
	const char *name = elf_symbols_find(s, offset, &start);
	const char *before = elf_symbols_find(s, offset > 0 ? offset - 1 : 0, &start_before);

	if (name && start == offset && !code->has_call(code->context, offset)) {
		*ret_start = start;
		return name;
	}
	if (before)
		*ret_start = start_before;
	return before;
}

size_t elf_symbols_bytes(const struct elf_symbols *s)
{
	return sizeof(*s) + name_table_bytes(&s->names);
}
