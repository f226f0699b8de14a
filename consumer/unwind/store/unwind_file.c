/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwind/store/unwind_file.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "shared/elf/build_id.h"
#include "shared/elf/elf_digest.h"
#include "shared/elf/elf_reader.h"
#include "shared/elf/reason.h"
#include "shared/tools/macro.h"

/* The kernel maps whole pages, so the bytes before a segment in its first page are mapped too. */
#define PAGE_MASK 4095ULL

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#else
#error "unknown machine"
#endif

static void take_segment(struct unwind_layout *l, const Elf64_Phdr *p)
{
	uint64_t before = p->p_offset & PAGE_MASK;

	if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || l->count == UNWIND_SEGMENTS_MAX)
		return;
	l->segments[l->count++] = (struct unwind_segment){
		.offset = p->p_offset - before,
		.bytes = p->p_filesz + before,
		.bias = p->p_vaddr - p->p_offset,
	};
}

int unwind_file_machine(uint16_t machine, uint16_t own)
{
	if (machine != own)
		return -ENOTSUP;
	return own == EM_X86_64 ? 0 : -ENOSYS;
}

int unwind_file_layout(const struct elf_image *image, struct unwind_layout *ret_layout)
{
	struct unwind_layout layout = { .count = 0 };
	struct build_id id = { 0 };
	struct elf_reader e;
	int r;

	r = elf_reader_open(image, &e);
	if (r == 0 && !e.wide)
		r = -ENOTSUP;
	if (r == 0)
		r = unwind_file_machine(e.header.e_machine, OWN_MACHINE);
	if (r == 0)
		r = build_id_find_mapped(&e, &id);
	memcpy(layout.build_id, id.bytes, sizeof(id.bytes));
	layout.build_id_bytes = id.n;
	layout.fixed = e.header.e_type == ET_EXEC;
	for (size_t i = 0; r == 0 && i < e.segment_count; i++)
		take_segment(&layout, &e.segments[i]);
	if (r == 0)
		runtime_symbols_read(&e, &layout.runtime);
	elf_reader_done(&e);
	if (r == 0 && id.n >= BUILD_ID_BYTES_MIN &&
	    elf_digest_read(image, ELF_DIGEST_ROWS, &layout.digest) < 0)
		layout.digest = 0;
	if (r == 0)
		*ret_layout = layout;
	return r;
}

int unwind_file_bias(const struct unwind_layout *layout, uint64_t start, uint64_t offset,
		     uint64_t *ret_bias)
{
	const struct unwind_segment *best = NULL;

	for (size_t i = 0; i < layout->count; i++) {
		const struct unwind_segment *s = &layout->segments[i];
		bool begins = s->offset == offset;

		if (offset < s->offset || offset - s->offset >= s->bytes ||
		    (layout->fixed && start != offset + s->bias))
			continue;
		if (best && begins && best->offset == offset && best->bias != s->bias)
			return -ENOTUNIQ;
		if (!best || begins)
			best = s;
	}
	if (!best)
		return -ENOENT;
	*ret_bias = start - (offset + best->bias);
	return 0;
}

static const struct {
	int error;
	const char *word, *help;
} whys[] = {
#define UNWIND_WHY(error, word, help) { -(error), word, help },
#include "consumer/unwind/store/unwind_whys.def"
#undef UNWIND_WHY
};

static const char not_readable[] = "not_readable";

const char *unwind_file_why(int error)
{
	for (size_t i = 0; i < ARRAY_SIZE(whys); i++)
		if (whys[i].error == error)
			return whys[i].word;
	return not_readable;
}

const char *unwind_file_help(const char *why)
{
	for (size_t i = 0; i < ARRAY_SIZE(whys); i++)
		if (!strcmp(whys[i].word, why))
			return whys[i].help;
	return strcmp(why, not_readable)
		       ? reason_help(why)
		       : "its call frame information is broken, or reading it failed";
}
