/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/libdw.h"

#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <stdlib.h>

#include "tests/bench/tool.h"

struct libdw {
	Dwfl *dwfl;
	Dwfl_Module *modules[];
};

struct libdw *libdw_new(const char *const *paths, size_t count)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address,
	};
	struct libdw *d = calloc(1, sizeof(*d) + count * sizeof(*d->modules));

	if (!d)
		tool_die("memory");
	d->dwfl = dwfl_begin(&callbacks);
	if (!d->dwfl)
		tool_die("libdw: %s", dwfl_errmsg(-1));
	dwfl_report_begin(d->dwfl);
	for (size_t i = 0; i < count; i++) {
		d->modules[i] = dwfl_report_offline(d->dwfl, paths[i], paths[i], -1);
		if (!d->modules[i])
			tool_die("libdw: %s: %s", paths[i], dwfl_errmsg(-1));
	}
	dwfl_report_end(d->dwfl, NULL, NULL);
	return d;
}

void libdw_free(struct libdw *d)
{
	dwfl_end(d->dwfl);
	free(d);
}

const char *libdw_name(struct libdw *d, size_t file, uint64_t offset)
{
	GElf_Addr bias;
	GElf_Off into;
	GElf_Phdr p;
	GElf_Sym symbol;
	Elf *elf = dwfl_module_getelf(d->modules[file], &bias);

	for (int i = 0; elf && gelf_getphdr(elf, i, &p); i++)
		if (p.p_type == PT_LOAD && offset >= p.p_offset && offset - p.p_offset < p.p_filesz)
			return dwfl_module_addrinfo(d->modules[file],
						    p.p_vaddr + offset - p.p_offset + bias, &into,
						    &symbol, NULL, NULL, NULL);
	return NULL;
}
