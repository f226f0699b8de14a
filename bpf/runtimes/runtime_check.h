/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * runtime_check.h: checks a claim that a mapped file is a language runtime (struct runtime_claim),
 * and writes the facts. A claim counts only if all of this holds:
 *
 *  - the file is mapped privately and unwritable from its first byte on, and its ELF header and
 *    program headers are there;
 *  - the file runs here: its code is mapped executable from the same open file at the same bias. A
 *    file that is only read may be another user's, with symbols that point where its owner likes;
 *  - its tables of dynamic symbols come from its PT_DYNAMIC and lie in unwritable mappings of it.
 *    They are not claimed: in a table of the claimer's choice any bytes are a symbol;
 *  - each claimed symbol has the fixed name, and is an object within a loaded segment;
 *  - a layout fits, by the version or the sizes of objects that the file contains.
 *
 * The findings about the file alone are kept for its next process (runtime_files).
 *
 * The memory is read through page tables (page_walk.h), so a check waits for nothing. A process
 * that changes its own mappings meanwhile deceives only about itself.
 */
#ifndef TROCAR_BPF_RUNTIMES_RUNTIME_CHECK_H
#define TROCAR_BPF_RUNTIMES_RUNTIME_CHECK_H

#include <bpf/bpf_core_read.h>

#include "bpf/kernel/kernel_runtime.h"
#include "bpf/mappings/mapped_file.h"
#include "bpf/mappings/page_walk.h"
#include "bpf/mappings/vma_tree.h"
#include "bpf/runtimes/python_layout.h"
#include "bpf/runtimes/runtime_facts.h"

/* Of ELF (elf(5)). */
#define ELF_MAGIC	   0x464c457fu
#define ELF_HEADER_BYTES   64
#define ELF_PHDR_BYTES	   56
#define ELF_PHDRS_MAX	   16
#define ELF_LOADS_MAX	   8
#define ELF_DYNAMIC_MAX	   64
#define ELF_SYMBOL_BYTES   24
#define ELF_SYMBOLS_MAX	   (1u << 24)
#define ELF_PT_LOAD	   1
#define ELF_PT_DYNAMIC	   2
#define ELF_PF_X	   1
#define ELF_DT_STRTAB	   5
#define ELF_DT_SYMTAB	   6
#define ELF_STT_OBJECT	   1
#define ELF_STB_WEAK	   2
#define CHECK_PAGE	   4096u
#define CHECK_READ_BYTES   64
#define CHECK_USER	   (1ull << 2) /* in a page table entry */
#define CHECK_NAME_WORDS   2
#define CHECK_COOKIE	   (*(const __u64 *)"xdebugpy") /* CPython 3.13 and newer */
#define CHECK_SHARED_FLAGS (VM_WRITE | VM_SHARED)

/* A name of at most 15 characters, and its length with the NUL. */
struct runtime_symbol_name {
	char text[CHECK_NAME_WORDS * 8];
};

static const volatile struct runtime_symbol_name runtime_symbol_names[8] = {
	{ "_PyRuntime" },   { "PyCode_Type" },	{ "PyUnicode_Type" },
	{ "PyBytes_Type" }, { "PyFrame_Type" }, { "Py_Version" },
};

static const volatile __u32 runtime_symbol_bytes[8] = { 11, 12, 15, 13, 13, 11 };

#define RUNTIME_FILES 256

/* The findings of a check about a file; offsets are from the address of its first byte. */
struct runtime_file {
	__u64 values[RUNTIME_SYMBOLS]; /* 0: none */
	__u64 code, code_base; /* a byte of its code, and the begin of the file as mapped there */
	__u32 layout;
	__u32 pad;
};

/*
 * Private: files that were checked, by their version (mapped_file_version). A process that was
 * forked has the pages of a file's symbols in memory only if it has read them, which most never do.
 */
MAP(LRU_HASH, runtime_files, __u64, struct runtime_file, RUNTIME_FILES);

/* The numbers that decide the layout of CPython. */
struct python_print {
	__u32 version; /* 0: of before 3.11, which has no such word */
	__u32 code_bytes;
	__u64 state_bytes;
};

/* State of one check. Not on the stack, as struct tree_scratch of iter.bpf.c. */
struct runtime_checked {
	__u64 mm, pgd;
	__u64 start;	   /* the claim's */
	__u64 file, other; /* addresses of struct file: of the claim, of the mapping found last */
	__u64 vma_base;	   /* of the mapping found last: address of the file's first byte */
	__u64 vma_end;
	__u32 vma_flags;
	__u32 state; /* enum runtime_state */
	__u64 bias;
	__u64 headers; /* address of the program headers */
	__u64 dynamic, symbols, strings;
	__u64 at[ELF_LOADS_MAX], bytes[ELF_LOADS_MAX]; /* loaded segments, with the bias */
	__u32 header_count, loads;
	__u32 runs; /* the code is mapped executable */
	__u32 layout;
	__u64 version; /* of the file */
	struct runtime_file found;
	struct python_print print;
	__u64 values[8], sizes[8];
	__u64 words[2 * CHECK_READ_BYTES / 8]; /* the memory read last */
	struct vma_node node;
};

TASK_MAP(runtime_checks, struct runtime_checked);

static __always_inline struct runtime_checked *runtime_checked_get(void)
{
	return bpf_task_storage_get(&runtime_checks, bpf_get_current_task_btf(), 0, 0);
}

/* Reads `bytes` bytes within one page to `words`, from byte `to` on. Returns 0 or -1. */
__noinline int runtime_check_piece(__u64 address, __u32 to, __u32 bytes)
{
	const struct page_layout *l = map_single(&page_layout);
	struct runtime_checked *c = runtime_checked_get();
	__u64 from, entry = 0, again = 0, at = 0, n = bytes, offset = to;

	asm volatile("" : "+r"(n), "+r"(offset));
	if (!l || !l->base || !c || n > CHECK_READ_BYTES || offset > CHECK_READ_BYTES ||
	    address >> ((l->top + PAGE_TABLE_BITS - 1) & 63))
		return -1;
	from = page_walk_find(l, c->pgd, address, &entry, &at);
	/* As look_fetch of look_memory.h: the page may have been taken during the read. */
	if (!from || !(entry & CHECK_USER) ||
	    bpf_probe_read_kernel((char *)c->words + offset, n, (const void *)from) ||
	    bpf_probe_read_kernel(&again, sizeof(again), (const void *)at) ||
	    (entry ^ again) & (PAGE_FRAME | PAGE_PRESENT))
		return -1;
	return 0;
}

/* Reads up to CHECK_READ_BYTES bytes to `words`. Without memory there sets `state`, returns -1. */
__noinline int runtime_check_read(__u64 address, __u32 bytes)
{
	struct runtime_checked *c = runtime_checked_get();
	__u32 in_page = CHECK_PAGE - (address & (CHECK_PAGE - 1));
	__u32 first = bytes < in_page ? bytes : in_page;

	if (!c)
		return -1;
	if (runtime_check_piece(address, 0, first) ||
	    (first < bytes && runtime_check_piece(address + first, first, bytes - first))) {
		c->state = RUNTIME_STATE_NOT_RESIDENT;
		return -1;
	}
	return 0;
}

/* Finds the mapping at `address`: sets `other` (0: no file) and the members of the mapping. */
__noinline int runtime_check_find(__u64 address)
{
	struct runtime_checked *c = runtime_checked_get();
	const struct vm_area_struct *vma;
	const struct file *file;
	__u64 found = 0, last = 0, start;

	if (!c)
		return -1;
	c->other = c->vma_flags = 0;
	if (!vma_tree_find((const struct mm_struct *)c->mm, &c->node, address, &found, &last) ||
	    !found)
		return -1;
	vma = (const struct vm_area_struct *)found;
	start = BPF_CORE_READ(vma, vm_start);
	c->vma_end = BPF_CORE_READ(vma, vm_end);
	if ((__u64)BPF_CORE_READ(vma, vm_mm) != c->mm || address < start || address >= c->vma_end)
		return -1;
	file = BPF_CORE_READ(vma, vm_file);
	if (!file || mapped_file_is_memory(vma, file) ||
	    (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFREG)
		return -1;
	c->vma_flags = BPF_CORE_READ(vma, vm_flags);
	c->vma_base = start - (BPF_CORE_READ(vma, vm_pgoff) << page_shift());
	c->other = (__u64)file;
	return 0;
}

/* Returns whether [address, address + bytes) is in one unwritable private mapping of the file. */
static __always_inline bool runtime_check_is_fixed(struct runtime_checked *c, __u64 address,
						   __u32 bytes)
{
	return !runtime_check_find(address) && c->other == c->file &&
	       !(c->vma_flags & CHECK_SHARED_FLAGS) && c->vma_end - address >= bytes;
}

/* Returns whether the code in `found` is mapped executable, from the file and at its place. */
static __always_inline bool runtime_check_runs(struct runtime_checked *c)
{
	return !runtime_check_find(c->start + c->found.code) && c->other == c->file &&
	       c->vma_flags & VM_EXEC && !(c->vma_flags & CHECK_SHARED_FLAGS) &&
	       c->vma_base == c->start + c->found.code_base;
}

/* Examines program header `i`. */
static long check_header(__u32 i, void *context)
{
	struct runtime_checked *c = *(struct runtime_checked **)context;
	__u64 offset, address, bytes;
	__u32 type, flags, n;

	if (i >= c->header_count)
		return 1;
	if (runtime_check_read(c->headers + i * ELF_PHDR_BYTES, ELF_PHDR_BYTES))
		return 1;
	type = (__u32)c->words[0];
	flags = c->words[0] >> 32;
	offset = c->words[1];
	address = c->words[2];
	bytes = c->words[5];
	if (type == ELF_PT_DYNAMIC)
		c->dynamic = address;
	if (type != ELF_PT_LOAD)
		return 0;
	n = c->loads;
	if (!n)
		c->bias = c->start - (address - offset);
	if (n < ELF_LOADS_MAX) {
		c->at[n & (ELF_LOADS_MAX - 1)] = c->bias + address;
		c->bytes[n & (ELF_LOADS_MAX - 1)] = bytes;
		c->loads = n + 1;
	}
	if (flags & ELF_PF_X && !c->runs) {
		c->found.code = c->bias + address - c->start;
		c->found.code_base = c->found.code - offset;
		c->runs = runtime_check_runs(c);
	}
	return 0;
}

/* Checks that a private, unwritable mapping of a file begins at `start`. */
static __always_inline int check_mapping(struct runtime_checked *c)
{
	c->state = RUNTIME_STATE_NOT_MAPPED;
	if (c->start & (CHECK_PAGE - 1) || runtime_check_find(c->start) ||
	    c->vma_flags & CHECK_SHARED_FLAGS || c->vma_base != c->start)
		return -1;
	c->file = c->other;
	c->version = mapped_file_version((const struct file *)c->file);
	return 0;
}

/* Takes the findings of an earlier check of the file. Returns -1 if there was none. */
static __always_inline int check_known(struct runtime_checked *c)
{
	__u64 version = c->version;
	const struct runtime_file *known = bpf_map_lookup_elem(&runtime_files, &version);

	if (!known)
		return -1;
	c->found = *known;
	c->state = runtime_check_runs(c) ? RUNTIME_STATE_OK : RUNTIME_STATE_NOT_RUNNING;
	c->layout = c->found.layout;
	for (int i = 0; i < RUNTIME_SYMBOLS; i++)
		c->values[i] = c->found.values[i] ? c->start + c->found.values[i] : 0;
	return 0;
}

/* Keeps the findings about the file. */
static __always_inline void keep_file(struct runtime_checked *c)
{
	__u64 version = c->version;

	for (int i = 0; i < RUNTIME_SYMBOLS; i++)
		c->found.values[i] = c->values[i] ? c->values[i] - c->start : 0;
	c->found.layout = c->layout;
	c->found.pad = 0;
	bpf_map_update_elem(&runtime_files, &version, &c->found, BPF_ANY);
}

/* Reads the header and the program headers, and checks that the file runs here. */
__noinline int runtime_check_headers(void)
{
	struct runtime_checked *c = runtime_checked_get();
	__u64 at;

	if (!c)
		return -1;
	if (runtime_check_read(c->start, ELF_HEADER_BYTES))
		return -1;
	c->state = RUNTIME_STATE_BAD_HEADER;
	at = c->words[4];		      /* e_phoff */
	c->header_count = (__u16)c->words[7]; /* e_phnum: byte 56 */
	/* Class 64, and e_phentsize at byte 54. */
	if ((__u32)c->words[0] != ELF_MAGIC || ((__u8 *)c->words)[4] != 2 ||
	    c->words[6] >> 48 != ELF_PHDR_BYTES || c->header_count > ELF_PHDRS_MAX ||
	    at > CHECK_PAGE - ELF_PHDRS_MAX * ELF_PHDR_BYTES)
		return -1;
	c->headers = c->start + at;
	c->bias = c->dynamic = 0;
	c->loads = c->runs = 0;
	bpf_loop(ELF_PHDRS_MAX, check_header, &c, 0);
	if (c->state == RUNTIME_STATE_NOT_RESIDENT)
		return -1;
	c->state = c->runs ? RUNTIME_STATE_NO_SYMBOLS : RUNTIME_STATE_NOT_RUNNING;
	return c->runs && c->dynamic ? 0 : -1;
}

/* Examines entry `i` of the dynamic section. */
static long check_dynamic(__u32 i, void *context)
{
	struct runtime_checked *c = *(struct runtime_checked **)context;
	__u64 tag, value;

	if (runtime_check_read(c->bias + c->dynamic + i * 16, 16))
		return 1;
	tag = c->words[0];
	value = c->words[1];
	/* glibc adds the bias to these addresses; musl does not. */
	if (value < c->bias)
		value += c->bias;
	if (tag == ELF_DT_SYMTAB)
		c->symbols = value;
	if (tag == ELF_DT_STRTAB)
		c->strings = value;
	return !tag;
}

/*
 * Returns whether the object is within a loaded segment of the file. Without branches: the verifier
 * would follow each combination.
 */
static __always_inline bool is_loaded(const struct runtime_checked *c, __u64 address, __u64 bytes)
{
	__u64 is_in = 0;

	for (int i = 0; i < ELF_LOADS_MAX; i++) {
		__u64 at = address - c->at[i], room = c->bytes[i];

		/* Of sizes below 2^63 the sign of a difference is a comparison. */
		is_in |= ((at - room) & ~((room - at) - bytes) & ~at & ((__u64)i - c->loads)) >> 63;
	}
	return is_in;
}

/* Reads symbol `k` of the claim, checks its name, and stores its address and size. */
static long check_symbol(__u32 k, void *context)
{
	struct runtime_checked *c = *(struct runtime_checked **)context;
	const volatile struct runtime_symbol_name *name = &runtime_symbol_names[k & 7];
	const struct unwind_claims *claims = map_single(&unwind_claims);
	__u32 index, info, bytes = runtime_symbol_bytes[k & 7];
	__u64 at, value, size;

	if (!claims || k >= RUNTIME_SYMBOLS)
		return 1;
	index = READ_WORD(claims->runtime.symbols[k]);
	c->values[k & 7] = c->sizes[k & 7] = 0;
	if (!index && k == RUNTIME_SYMBOL_VERSION)
		return 0;
	c->state = RUNTIME_STATE_BAD_SYMBOL;
	at = c->symbols + (__u64)index * ELF_SYMBOL_BYTES;
	if (!index || index > ELF_SYMBOLS_MAX || !runtime_check_is_fixed(c, at, ELF_SYMBOL_BYTES) ||
	    runtime_check_read(at, ELF_SYMBOL_BYTES))
		return 1;
	at = c->strings + (__u32)c->words[0];
	info = c->words[0] >> 32 & 0xff;
	value = c->bias + c->words[1];
	size = c->words[2];
	if ((info & 15) != ELF_STT_OBJECT || !(info >> 4) || info >> 4 > ELF_STB_WEAK ||
	    !is_loaded(c, value, size) || !runtime_check_is_fixed(c, at, bytes))
		return 1;
	c->words[0] = c->words[1] = 0;
	if (runtime_check_read(at, bytes))
		return 1;
	if (c->words[0] != *(const volatile __u64 *)&name->text[0] ||
	    c->words[1] != *(const volatile __u64 *)&name->text[8])
		return 1;
	c->values[k & 7] = value;
	c->sizes[k & 7] = size;
	c->state = RUNTIME_STATE_OK;
	return 0;
}

/* Finds the tables of symbols and checks the symbols of the claim. */
__noinline int runtime_check_symbols(void)
{
	struct runtime_checked *c = runtime_checked_get();

	if (!c)
		return -1;
	c->symbols = c->strings = 0;
	bpf_loop(ELF_DYNAMIC_MAX, check_dynamic, &c, 0);
	if (c->state == RUNTIME_STATE_NOT_RESIDENT || !c->symbols || !c->strings)
		return -1;
	bpf_loop(RUNTIME_SYMBOLS, check_symbol, &c, 0);
	return c->state == RUNTIME_STATE_OK ? 0 : -1;
}

/*
 * Compares row `i` of the layouts: sets *found to its number plus 1 if it fits. At most one does.
 * The numbers are small, so the sign of a difference is a comparison.
 */
static __always_inline void compare_layout(const struct python_print *p, __u32 i, __u32 *found)
{
	const volatile struct python_layout *l = &python_layouts[i & (PYTHON_LAYOUTS - 1)];
	__u64 version = l->version, state_bytes = l->state_bytes;
	__u64 is_old = (version - PYTHON_OBJECTS) >> 63, differs;

	/* Up to 3.10 the size is exact, and there is no version; later it is a minimum. */
	differs = (p->version ^ (version & (is_old - 1))) | (l->code_bytes ^ p->code_bytes);
	differs |= is_old * (state_bytes ^ p->state_bytes) | (p->state_bytes - state_bytes) >> 63;
	differs |= !version;
	*found += (i + 1) * !differs;
}

static long compare_row(__u32 i, void *context)
{
	struct runtime_checked *c = *(struct runtime_checked **)context;

	compare_layout(&c->print, i, &c->layout);
	return 0;
}

/* Reads the version and the sizes, and finds the layout. */
__noinline int runtime_check_layout(void)
{
	struct runtime_checked *c = runtime_checked_get();
	__u64 code, version;

	if (!c)
		return -1;
	code = c->values[RUNTIME_SYMBOL_CODE];
	version = c->values[RUNTIME_SYMBOL_VERSION];
	c->layout = 0;
	c->print.version = 0;
	/* The type of types is its own type; tp_name and tp_basicsize of this one. */
	if (runtime_check_read(code, 40))
		return -1;
	c->print.code_bytes = c->words[4];
	c->print.state_bytes = c->sizes[RUNTIME_SYMBOL_STATE];
	code = c->words[3];
	c->words[0] = 0;
	if (!runtime_check_is_fixed(c, code, 5) || runtime_check_read(code, 5) ||
	    (c->words[0] & 0xffffffffffull) != *(const __u32 *)"code") {
		if (c->state == RUNTIME_STATE_OK)
			c->state = RUNTIME_STATE_UNKNOWN_VERSION;
		return -1;
	}
	if (version) {
		if (!runtime_check_is_fixed(c, version, 4) || runtime_check_read(version, 4)) {
			if (c->state == RUNTIME_STATE_OK)
				c->state = RUNTIME_STATE_UNKNOWN_VERSION;
			return -1;
		}
		c->print.version = (__u32)c->words[0] >> 16;
	}
	bpf_loop(PYTHON_LAYOUTS, compare_row, &c, 0);
	if (!c->layout) {
		c->state = RUNTIME_STATE_UNKNOWN_VERSION;
		return -1;
	}
	c->layout--;
	keep_file(c);
	return 0;
}

/*
 * Checks the part that each process has of its own. Since 3.13 CPython has a cookie there, the
 * version, and whether there is no global lock.
 */
__noinline int runtime_check_process(void)
{
	struct runtime_checked *c = runtime_checked_get();
	__u32 version;

	if (!c || c->state != RUNTIME_STATE_OK)
		return -1;
	version = python_layouts[c->layout & (PYTHON_LAYOUTS - 1)].version;
	if (version < PYTHON_COOKIE)
		return 0;
	if (runtime_check_read(c->values[RUNTIME_SYMBOL_STATE], 24))
		return -1;
	if (c->words[0] == CHECK_COOKIE && c->words[1] >> 16 == version && !c->words[2])
		return 0;
	c->state = RUNTIME_STATE_UNKNOWN_VERSION;
	return -1;
}

/* 0: no claim is accepted. The loader sets it (--runtimes). */
const volatile __u32 has_runtimes = 1;

/*
 * Checks the claim about `task`, after its table `number` was filled as `r`. Returns enum
 * runtime_state; only with RUNTIME_STATE_OK the facts of the table are valid.
 */
static __always_inline __u32 runtime_check(struct task_struct *task, const struct unwind_ranges *r,
					   __u32 number, const struct unwind_claims *claims)
{
	struct runtime_facts *f = bpf_map_lookup_elem(&runtime_facts, &number);
	const struct task_struct___runtime *fields = (const void *)task;
	struct runtime_checked *c;

	if (!f)
		return RUNTIME_STATE_NONE;
	f->proved.table_generation = 0;
	if (!has_runtimes || !READ_WORD(claims->runtime.start) ||
	    BPF_CORE_READ(fields, personality) & READ_IMPLIES_EXEC)
		return RUNTIME_STATE_NONE;
	c = map_of_thread(&runtime_checks);
	if (!c)
		return RUNTIME_STATE_NOT_RESIDENT;
	c->mm = (__u64)BPF_CORE_READ(task, mm);
	c->pgd = (__u64)BPF_CORE_READ(task, mm, pgd);
	c->start = READ_WORD(claims->runtime.start);
	if (check_mapping(c) ||
	    (check_known(c) &&
	     (runtime_check_headers() || runtime_check_symbols() || runtime_check_layout())) ||
	    runtime_check_process())
		return c->state;
	for (int i = 0; i < RUNTIME_SYMBOLS; i++)
		f->proved.values[i] = c->values[i];
	f->proved.start_ns = r->start_ns;
	f->proved.tgid = r->tgid;
	f->proved.image = r->image;
	f->proved.layout = c->layout;
	f->second = f->copied = 0;
	f->has_wanted = 0;
	__builtin_memset(f->wanted, 0, sizeof(f->wanted));
	__sync_lock_test_and_set(&f->proved.table_generation, r->table_generation);
	return RUNTIME_STATE_OK;
}

#endif
