/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/naming/code_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/elf/build_id.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define DYNAMIC_MAX (64u << 10) /* bytes of the dynamic section that are read */
#define SONAME_MAX  64		/* NUL included; the names that matter are shorter */

/* Contents of the dynamic section. */
struct dynamic {
	uint64_t strings; /* address of the strings; 0: none */
	uint64_t soname;  /* offset there; 0: none */
	bool needs;	  /* it loads a library */
};

void code_files_init(struct code_files *c, struct symbols *symbols)
{
	*c = (struct code_files){ .symbols = symbols };
}

static void close_file(struct code_file *f)
{
	if (f->module)
		cleanup_close(&f->image.fd);
	*f = (struct code_file){ .image = { .fd = -1 }, .entry = CODE_FILES_NOWHERE };
}

void code_files_done(struct code_files *c)
{
	for (size_t i = 0; i < CODE_FILES_MAX; i++)
		close_file(&c->files[i]);
}

static const Elf64_Phdr *find_segment(const struct elf_reader *e, uint32_t type)
{
	for (size_t i = 0; i < e->segment_count; i++)
		if (e->segments[i].p_type == type)
			return &e->segments[i];
	return NULL;
}

static void take_entry(struct dynamic *d, int64_t tag, uint64_t value)
{
	if (tag == DT_STRTAB)
		d->strings = value;
	else if (tag == DT_SONAME)
		d->soname = value;
	else if (tag == DT_NEEDED)
		d->needs = true;
}

/* Reads the dynamic section; an executable that loads nothing has none. 0 or -errno. */
static int read_dynamic(const struct elf_reader *e, struct dynamic *ret)
{
	const Elf64_Phdr *p = find_segment(e, PT_DYNAMIC);
	_cleanup_free_ uint8_t *data = NULL;
	size_t bytes, size = e->wide ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
	int r;

	*ret = (struct dynamic){ 0 };
	if (!p)
		return 0;
	bytes = (size_t)MIN(p->p_filesz, (uint64_t)DYNAMIC_MAX);
	data = malloc(bytes + 1);
	if (!data)
		return -ENOMEM;
	r = elf_reader_at(e->image, p->p_offset, data, bytes);
	for (size_t at = 0; r == 0 && at + size <= bytes; at += size) {
		Elf64_Dyn wide;
		Elf32_Dyn narrow;

		memcpy(&wide, data + at, e->wide ? sizeof(wide) : 0);
		memcpy(&narrow, data + at, e->wide ? 0 : sizeof(narrow));
		if (e->wide)
			take_entry(ret, wide.d_tag, wide.d_un.d_val);
		else
			take_entry(ret, narrow.d_tag, narrow.d_un.d_val);
		if ((e->wide ? wide.d_tag : narrow.d_tag) == DT_NULL)
			break;
	}
	return r;
}

/* Reads the file's DT_SONAME; "" if it has none, or one longer than SONAME_MAX. */
static void read_soname(const struct elf_reader *e, const struct dynamic *d, char name[SONAME_MAX])
{
	memset(name, 0, SONAME_MAX);
	for (size_t i = 0; d->soname && i < e->segment_count; i++) {
		const Elf64_Phdr *p = &e->segments[i];
		uint64_t within = d->strings + d->soname - p->p_vaddr, left;

		if (p->p_type != PT_LOAD || within >= p->p_filesz)
			continue;
		left = MIN(p->p_filesz - within, (uint64_t)SONAME_MAX);
		if (elf_reader_at(e->image, p->p_offset + within, name, (size_t)left) < 0 ||
		    name[SONAME_MAX - 1] != '\0')
			memset(name, 0, SONAME_MAX);
		return;
	}
}

/*
 * Returns whether a file with this DT_SONAME is the C library. The dynamic loader loads no second
 * file with the name of a loaded one, so no other file of the process has it.
 */
static bool is_c_library(const char *soname)
{
	static const char *const names[] = {
		"libc.so.6",
		"libpthread.so.0",
		"ld-linux-x86-64.so.2",
		"ld-linux.so.2",
		"ld-linux-x32.so.2",
		"libc.so",
		"libc.musl-x86_64.so.1",
		"libc.musl-x86.so.1",
		"ld-linux-aarch64.so.1",
		"libc.musl-aarch64.so.1",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(soname, names[i]))
			return true;
	return false;
}

static bool has_section(struct elf_reader *e, const char *name)
{
	const Elf64_Shdr *s;

	return elf_reader_find(e, name, &s) == 0;
}

static enum code_runtime find_runtime(struct elf_reader *e)
{
	static const char libgo[] = "libgo.so.";
	char soname[SONAME_MAX];
	struct dynamic d;

	if (read_dynamic(e, &d) < 0 || elf_reader_sections(e) < 0)
		return CODE_OTHER;
	read_soname(e, &d, soname);
	if (is_c_library(soname))
		return CODE_C_LIBRARY;
	if (has_section(e, ".gopclntab") || has_section(e, ".data.rel.ro.gopclntab"))
		return CODE_GO;
	if (has_section(e, ".go_export") || !strncmp(soname, libgo, strlen(libgo)))
		return CODE_GCCGO;
	if (!find_segment(e, PT_INTERP) && !d.needs && !soname[0] && e->header.e_entry)
		return CODE_STATIC;
	return CODE_OTHER;
}

static void read_facts(struct code_file *f)
{
	const Elf64_Phdr *text;
	struct elf_reader e;

	if (elf_reader_open(&f->image, &e) == 0) {
		text = e.header.e_entry ? elf_reader_code(&e, e.header.e_entry) : NULL;
		if (text)
			f->entry = e.header.e_entry - text->p_vaddr + text->p_offset;
		f->runtime = find_runtime(&e);
		f->arm64 = e.header.e_machine == EM_AARCH64;
		f->wide = e.wide;
	}
	elf_reader_done(&e);
}

/* Opens the file and reads its facts; leaves image.fd at -1 if it is not the mapped file. */
static void open_file(struct symbols *symbols, struct code_file *f)
{
	struct elf_image image = { .fd = -1 };
	struct build_id id = { 0 };

	if (symbols_open(symbols, f->module, &image))
		return;
	if (build_id_read_mapped(&image, &id) < 0 ||
	    !symbols_is_build(symbols, f->module, id.bytes, id.n)) {
		cleanup_close(&image.fd);
		return;
	}
	f->image = image;
	read_facts(f);
}

static struct code_file *find_file(struct code_files *c, const struct module *m)
{
	for (size_t i = 0; i < CODE_FILES_MAX; i++)
		if (c->files[i].module == m)
			return &c->files[i];
	return NULL;
}

const struct code_file *code_files_get(struct code_files *c, const struct module *m)
{
	const struct module *file = m && m->resolved ? m->resolved : m;
	struct code_file *f;

	if (!file || file->anonymous || file->path[0] != '/')
		return NULL;
	f = find_file(c, file);
	if (!f) {
		f = &c->files[c->next++ % CODE_FILES_MAX];
		close_file(f);
		f->module = file;
		open_file(c->symbols, f);
	}
	return f->image.fd >= 0 ? f : NULL;
}

bool code_files_read(const struct code_file *f, uint64_t offset, void *to, size_t bytes)
{
	return elf_reader_at(&f->image, offset, to, bytes) == 0;
}
