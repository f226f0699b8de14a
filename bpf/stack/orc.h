/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * orc.h: finds how the kernel stack continues from an address of kernel code, in the tables by
 * which the kernel unwinds itself (ORC, Documentation/arch/x86/orc-unwinder.rst). A search in them
 * touches a dozen cold cache lines. So each row is cached in `orc_rows`, in eight bytes with its
 * address: a known frame costs one line. Both maps are private: only the programs read or write
 * them.
 */
#ifndef TROCAR_BPF_STACK_ORC_H
#define TROCAR_BPF_STACK_ORC_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel/kernel_orc.h"
#include "bpf/maps/maps.h"

#define ORC_AREAS      512  /* modules loaded at a time, plus the kernel itself */
#define ORC_STEPS      20   /* steps of a search: tables have at most a million rows */
#define ORC_HOOKS      2    /* addresses with which tracers replace a return address */
#define ORC_CALLS      2048 /* cached rows of return addresses */
#define ORC_LEAF_BITS  10
#define ORC_LEAVES     (1u << ORC_LEAF_BITS) /* cached rows of addresses that ticks interrupted */
#define ORC_PLACE_BITS 12
#define ORC_ENTRY_BITS 32 /* bits of an address that are stored with its row */
#define ORC_BLOCK_BITS 10 /* log2 of the code bytes per word of the index */
#define ORC_BLOCKS     65536

_Static_assert(ORC_LEAVES <= ORC_CALLS, "not all rows are forgotten");

/*
 * A cached row: the caller's stack pointer is (a register or a word) + 8 * SP, and its bp is at (a
 * register) + 8 * BP.
 */
#define ORC_ROW_VALID	 (1u << 31) /* unset: no row, or one that orc.h does not follow */
#define ORC_ROW_PLAIN	 (1u << 27) /* see mark_plain */
#define ORC_ROW_SIGNAL	 (1u << 26) /* its caller was interrupted; it made no call */
#define ORC_ROW_KIND(r)	 ((r) >> 24 & 3)
#define ORC_ROW_SAVED(r) ((r) >> 22 & 3)
#define ORC_ROW_FROM(r)	 ((r) >> 20 & 3)
#define ORC_ROW_BP(r)	 ((__s64)(__s8)((r) >> 12) * 8)
#define ORC_ROW_SP(r)	 ((__s64)((__s32)((r) << 20) >> 20) * 8)

enum orc_kind { ORC_END, ORC_CALL, ORC_REGS, ORC_REGS_PARTIAL };
enum orc_saved { ORC_SAVED_NOT, ORC_SAVED_BY_SP, ORC_SAVED_BY_BP };
enum orc_from { ORC_FROM_SP, ORC_FROM_BP, ORC_FROM_SP_WORD, ORC_FROM_BP_WORD };

/* A range of code and its table: sorted offsets to addresses, and as many rows. */
struct orc_area {
	__u64 begin, end;
	__u64 ips, rows;
	__u32 count, pad;
};

/* Register numbers that differ between kernels (kernel_orc.h). */
struct orc_numbers {
	__u32 sp, prev_sp, bp_indirect;
	__u32 pad;
};

/* A kernel function: from its first byte to the first byte of the next function. */
struct orc_function {
	__u64 begin, end;
};

/* Area 0 is the kernel itself. All data but the modules is constant after the load. */
struct orc_areas {
	__u32 count; /* used areas, and holes between them; 0: no tables */
	__u32 wrong; /* walks that differed from the kernel's own */
	__u64 hooks[ORC_HOOKS];
	__u64 modules; /* address of the list of modules */
	__u64 ips_end;
	__u64 function;			 /* the begin of a C function */
	struct orc_function fault, fred; /* entries (fault_entry.h); end 0: unknown */
	struct orc_numbers numbers;
	struct orc_area items[ORC_AREAS];
};

__weak MAP(ARRAY, orc_areas, __u32, struct orc_areas, 1);

/*
 * The rows of return addresses are in the order in which walks met them, so that the row of the
 * next frame is mostly the next one, in the same cache line. The rows of leaves are many; they are
 * separate so that they do not evict the others, and each hash has two places. A row is written as
 * a whole, so that readers need no lock. The value is small enough that the kernel allocates it in
 * its direct mapping, which has large pages: a cold walk mostly waits for TLB misses.
 */
struct orc_rows {
	__u64 calls[ORC_CALLS];
	__u64 leaves[ORC_LEAVES];
};

__weak MAP(ARRAY, orc_rows, __u32, struct orc_rows, 1);

/* Possible index of a row in `calls`, by a hash of its address. */
struct orc_places {
	__u16 items[1u << ORC_PLACE_BITS];
	__u32 added; /* total rows added: a new one replaces the oldest */
};

__weak MAP(ARRAY, orc_places, __u32, struct orc_places, 1);

/*
 * For each block of code: the index of the last row of the kernel's own table that is not above the
 * block's begin, plus 1; 0: not known yet. A search covers only the few rows between two of these.
 */
struct orc_blocks {
	__u32 rows[ORC_BLOCKS];
};

__weak MAP(ARRAY, orc_blocks, __u32, struct orc_blocks, 1);

static __always_inline struct orc_areas *orc_areas_get(void)
{
	return map_single(&orc_areas);
}

/* A search for the area that contains an address. */
struct orc_search {
	const struct orc_areas *areas;
	__u64 address;
	__u32 found; /* its index plus 1 */
};

static long try_area(__u32 i, struct orc_search *s)
{
	const struct orc_area *a = &s->areas->items[i & (ORC_AREAS - 1)];

	if (i >= READ_WORD(s->areas->count))
		return 1;
	if (s->address < a->begin || s->address >= a->end)
		return 0;
	s->found = i + 1;
	return 1;
}

/* Returns the area of code that contains the address, or NULL. */
static __always_inline const struct orc_area *orc_find_area(const struct orc_areas *areas,
							    __u64 address)
{
	struct orc_search s = { .areas = areas, .address = address };

	if (!READ_WORD(areas->count))
		return 0;
	if (address >= areas->items[0].begin && address < areas->items[0].end)
		return &areas->items[0];
	bpf_loop(ORC_AREAS, try_area, &s, 0);
	return s.found ? &areas->items[(s.found - 1) & (ORC_AREAS - 1)] : 0;
}

/* A search for the last address in a table that is not above `address`. */
struct orc_row_search {
	__u64 ips, address;
	__u32 first, left; /* the remaining candidates */
};

static long halve_search(__u32 i, struct orc_row_search *s)
{
	__u32 half = s->left >> 1;
	__u64 at = s->ips + 4ull * (s->first + half);
	__s32 offset = 0;

	if (!half || bpf_probe_read_kernel(&offset, sizeof(offset), (const void *)at))
		return 1;
	if (at + (__s64)offset <= s->address) {
		s->first += half;
		s->left -= half;
	} else {
		s->left = half;
	}
	return 0;
}

/*
 * Returns the index of the kernel's row for the begin of block `number`. A global function: the
 * verifier checks it once.
 */
__weak __noinline int orc_block_row(__u32 number)
{
	const struct orc_areas *areas = orc_areas_get();
	struct orc_row_search s = {};
	__u32 known;
	struct orc_blocks *blocks = map_single(&orc_blocks);

	if (!areas || !blocks)
		return 0;
	known = READ_WORD(blocks->rows[number & (ORC_BLOCKS - 1)]);
	if (known)
		return (int)known - 1;
	s.ips = areas->items[0].ips;
	s.left = areas->items[0].count;
	s.address = areas->items[0].begin + ((__u64)number << ORC_BLOCK_BITS);
	bpf_loop(ORC_STEPS, halve_search, &s, 0);
	blocks->rows[number & (ORC_BLOCKS - 1)] = s.first + 1;
	return (int)s.first;
}

/* Returns the address of the row of `address`. */
static __always_inline __u64 find_entry(const struct orc_areas *areas, const struct orc_area *a,
					__u64 address)
{
	struct orc_row_search s = { .ips = a->ips, .address = address, .left = a->count };
	__u64 block = (address - a->begin) >> ORC_BLOCK_BITS;

	if (a == &areas->items[0] && block < ORC_BLOCKS - 1) {
		s.first = (__u32)orc_block_row((__u32)block);
		s.left = (__u32)orc_block_row((__u32)block + 1) - s.first + 1;
	}
	bpf_loop(ORC_STEPS, halve_search, &s, 0);
	return a->rows + bpf_core_type_size(struct orc_entry) * s.first;
}

/* Returns whether the address is a tracer's replacement, which hides the true return address. */
static __always_inline bool is_hook(const struct orc_areas *areas, __u64 address)
{
	for (int i = 0; i < ORC_HOOKS; i++)
		if (areas->hooks[i] && address + 1 == areas->hooks[i])
			return true;
	return false;
}

/* Returns enum orc_kind in the bits of a row, or 0 for a row that is not followed. */
static __always_inline __u32 pack_kind(const struct orc_entry *entry)
{
	const struct orc_entry___signal *signal = (const void *)entry;
	const struct orc_entry___end *end = (const void *)entry;
	__u32 type = BPF_CORE_READ_BITFIELD_PROBED(entry, type), row = ORC_ROW_VALID;

	if (bpf_core_field_exists(end->end)) {
		if (BPF_CORE_READ_BITFIELD_PROBED(end, end))
			return row | ORC_END << 24;
		type += ORC_TYPE_CALL;
	}
	if (type == ORC_TYPE_END_OF_STACK)
		return row | ORC_END << 24;
	if (type < ORC_TYPE_CALL || type > ORC_TYPE_REGS_PARTIAL)
		return 0;
	if (bpf_core_field_exists(signal->signal) ? BPF_CORE_READ_BITFIELD_PROBED(signal, signal)
						  : type != ORC_TYPE_CALL)
		row |= ORC_ROW_SIGNAL;
	return row | (type - ORC_TYPE_CALL + ORC_CALL) << 24;
}

/* Returns the registers in the bits of a row, or 0 for a row that is not followed. */
static __always_inline __u32 pack_registers(const struct orc_numbers *numbers,
					    const struct orc_entry *entry)
{
	__u32 from = BPF_CORE_READ_BITFIELD_PROBED(entry, sp_reg), saved;

	if (from == numbers->sp)
		from = ORC_FROM_SP;
	else if (from == ORC_REG_BP)
		from = ORC_FROM_BP;
	else if (from == ORC_REG_SP_INDIRECT)
		from = ORC_FROM_SP_WORD;
	else if (from == numbers->bp_indirect)
		from = ORC_FROM_BP_WORD;
	else
		return 0;
	saved = BPF_CORE_READ_BITFIELD_PROBED(entry, bp_reg);
	if (saved == ORC_REG_UNDEFINED)
		saved = ORC_SAVED_NOT;
	else if (saved == numbers->prev_sp)
		saved = ORC_SAVED_BY_SP;
	else if (saved == ORC_REG_BP)
		saved = ORC_SAVED_BY_BP;
	else
		return 0;
	return ORC_ROW_VALID | saved << 22 | from << 20;
}

/* Returns the offsets in the bits of a row, or 0 if they are not multiples of 8 or do not fit. */
static __always_inline __u32 pack_offsets(const struct orc_entry *entry)
{
	__s32 sp = BPF_CORE_READ(entry, sp_offset), bp = BPF_CORE_READ(entry, bp_offset);

	if ((sp | bp) & 7 || sp < -8 * 2048 || sp >= 8 * 2048 || bp < -8 * 128 || bp >= 8 * 128)
		return 0;
	return ORC_ROW_VALID | ((__u32)(bp >> 3) & 0xff) << 12 | ((__u32)(sp >> 3) & 0xfff);
}

/*
 * Returns ORC_ROW_PLAIN if the frame was called, is at an offset from SP or BP, and saved bp in
 * itself or not at all; else 0. Most rows are plain, and one bit replaces four tests.
 */
static __always_inline __u32 mark_plain(__u32 row)
{
	if (ORC_ROW_KIND(row) != ORC_CALL || ORC_ROW_FROM(row) > ORC_FROM_BP ||
	    ORC_ROW_SAVED(row) == ORC_SAVED_BY_BP || row & ORC_ROW_SIGNAL)
		return 0;
	return ORC_ROW_PLAIN;
}

/*
 * Searches for the row of an address. Without ORC_ROW_VALID the whole stack must come from
 * bpf_get_stack. A global function: the verifier checks it once.
 */
__weak __noinline int orc_search_row(__u64 address)
{
	const struct orc_areas *areas = orc_areas_get();
	const struct orc_area *area;
	const struct orc_entry *entry;
	__u32 kind, registers, offsets, row;

	if (!areas)
		return 0;
	area = orc_find_area(areas, address);
	if (!area || is_hook(areas, address))
		return 0;
	entry = (const void *)find_entry(areas, area, address);
	kind = pack_kind(entry);
	if (ORC_ROW_KIND(kind) == ORC_END)
		return (int)kind;
	registers = pack_registers(&areas->numbers, entry);
	offsets = pack_offsets(entry);
	row = kind | registers | offsets;
	return kind && registers && offsets ? (int)(row | mark_plain(row)) : 0;
}

static long forget_row(__u32 i, struct orc_rows **rows)
{
	(*rows)->calls[i & (ORC_CALLS - 1)] = 0;
	(*rows)->leaves[i & (ORC_LEAVES - 1)] = 0;
	return 0;
}

/*
 * Removes all cached rows, because other code may be at their addresses. A global function: the
 * verifier checks it once.
 */
__weak __noinline int orc_forget_rows(void)
{
	struct orc_rows *rows = map_single(&orc_rows);

	if (rows)
		bpf_loop(ORC_CALLS, forget_row, &rows, 0);
	return 0;
}

#endif
