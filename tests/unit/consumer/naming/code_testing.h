/* SPDX-License-Identifier: BSD-2-Clause */
/* code_testing.h: writes small ELF files with known code, and makes modules of them. */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_NAMING_CODE_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_NAMING_CODE_TESTING_H

#include "tests/unit/consumer/testing/unit_testing.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/consumer/symbols/specimen_testing.h"

#define CODE_TESTING_BIAS    0x10000u /* address of offset 0 */
#define CODE_TESTING_CODE    0x1000u  /* offset of the code, where the file begins */
#define CODE_TESTING_BYTES   0x1400u
#define CODE_TESTING_DYNAMIC 0x200u
#define CODE_TESTING_STRINGS 0x400u
#define CODE_TESTING_HEADERS 0x800u

struct code_testing_file {
	const char *soname, *needed, *section; /* NULL: none */
	bool interpreter;		       /* PT_INTERP */
	const void *code;
	size_t bytes;
};

static inline void code_testing_segments(const struct code_testing_file *f, Elf64_Phdr *p)
{
	p[0] = (Elf64_Phdr){ .p_type = PT_LOAD,
			     .p_flags = PF_R | PF_X,
			     .p_vaddr = CODE_TESTING_BIAS,
			     .p_filesz = CODE_TESTING_BYTES };
	p[1] = (Elf64_Phdr){ .p_type = f->soname || f->needed ? PT_DYNAMIC : PT_NULL,
			     .p_offset = CODE_TESTING_DYNAMIC,
			     .p_vaddr = CODE_TESTING_BIAS + CODE_TESTING_DYNAMIC,
			     .p_filesz = 0x100 };
	p[2] = (Elf64_Phdr){ .p_type = f->interpreter ? PT_INTERP : PT_NULL };
}

/* Writes the file and returns its module. */
static inline struct module *code_testing_module(struct symbols *s, const char *path,
						 const struct code_testing_file *f)
{
	_cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	static uint8_t image[CODE_TESTING_BYTES];
	Elf64_Ehdr *h = (Elf64_Ehdr *)image;
	Elf64_Dyn *dynamic = (Elf64_Dyn *)(image + CODE_TESTING_DYNAMIC);
	Elf64_Shdr *sections = (Elf64_Shdr *)(image + CODE_TESTING_HEADERS);
	char *strings = (char *)image + CODE_TESTING_STRINGS;

	memset(image, 0, sizeof(image));
	*h = (Elf64_Ehdr){ .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			   .e_type = ET_DYN,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_entry = CODE_TESTING_BIAS + CODE_TESTING_CODE,
			   .e_phoff = sizeof(*h),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 3,
			   .e_shoff = f->section ? CODE_TESTING_HEADERS : 0,
			   .e_shentsize = sizeof(Elf64_Shdr),
			   .e_shnum = f->section ? 3 : 0,
			   .e_shstrndx = f->section ? 2 : 0 };
	code_testing_segments(f, (Elf64_Phdr *)(image + sizeof(*h)));
	snprintf(strings + 1, 64, "%s", f->soname ? f->soname : "");
	snprintf(strings + 100, 64, "%s", f->section ? f->section : "");
	*dynamic++ = (Elf64_Dyn){ DT_STRTAB, { CODE_TESTING_BIAS + CODE_TESTING_STRINGS } };
	*dynamic++ = (Elf64_Dyn){ f->soname ? DT_SONAME : DT_DEBUG, { 1 } };
	*dynamic++ = (Elf64_Dyn){ f->needed ? DT_NEEDED : DT_DEBUG, { 1 } };
	sections[1] = (Elf64_Shdr){ .sh_name = 100, .sh_type = SHT_PROGBITS };
	sections[2] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
				    .sh_offset = CODE_TESTING_STRINGS,
				    .sh_size = 200 };
	if (f->bytes)
		memcpy(image + CODE_TESTING_CODE, f->code, f->bytes);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, image, sizeof(image)), sizeof(image));
	return module_of(s, path);
}

/* Sets `path`, of 64 bytes, to a name in a folder of the test, which must remove it. */
static inline void code_testing_path(char *path, const char *name)
{
	snprintf(path, 64, "/tmp/trocar-code-%d-%.20s", (int)getpid(), name);
}

#endif
