/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * unwind_abi.h: the form of a file's call frame information (.eh_frame) after the consumer has
 * compiled it: rows, rules and the page index. consumer/unwind/ writes them. The kernel side walks
 * stacks by them and trusts none of their numbers.
 *
 * A row has the rule that applies from its address up to the next row. A rule defines how to find
 * the caller's registers. All files share one dictionary of rules, which only grows. The page index
 * holds a word per page of UNWIND_PAGE_BYTES of text, so that a search reads only the rows of one
 * page.
 *
 * Registers are named by their roles, so that one form serves x86-64 (rsp, rbp, return address in
 * memory) and arm64 (sp, x29, return address in x30 at a leaf). Rows are compiled for x86-64 only;
 * the parts for arm64 are designed and not used yet.
 */
#ifndef TROCAR_SHARED_ABI_UNWIND_ABI_H
#define TROCAR_SHARED_ABI_UNWIND_ABI_H

#include <linux/types.h>

#include "shared/abi/runtime_abi.h"

#define UNWIND_PAGE_SHIFT   8 /* a page of the index: 256 bytes of text */
#define UNWIND_PAGE_BYTES   (1u << UNWIND_PAGE_SHIFT)
#define UNWIND_ROWS_MAX	    (1u << 22) /* rows of one file: 32 MiB */
#define UNWIND_SPAN_MAX	    (1u << 29) /* bytes from the first page of text to the last */
#define UNWIND_RULES_MAX    16384      /* rules of the dictionary */
#define UNWIND_SEARCH_STEPS 8	       /* halvings until one row of a page is left */
#define UNWIND_GAP_WORDS    1024 /* the most words that one walk searches for return addresses */

/*
 * A rule that applies from `pc` to the pc of the next row. Rows ascend strictly, and the first pc
 * is 0.
 */
struct unwind_row {
	__u32 pc;   /* address in the file (as p_vaddr), less the table's base */
	__u16 rule; /* index in the dictionary */
	__u16 pad;  /* 0 */
};

/* Rules that every dictionary begins with. */
#define UNWIND_RULE_NONE	0 /* no row: text without call frame information */
#define UNWIND_RULE_UNSUPPORTED 1 /* there is such information, but no rule can express it */
#define UNWIND_RULE_END		2 /* the outermost frame: the return address is undefined */

/*
 * Where the canonical frame address (CFA) is: the caller's stack pointer. `sp` and `fp` are those
 * of this frame. Low and high are the halves of cfa_offset, both signed 16 bits (UNWIND_LOW,
 * UNWIND_HIGH).
 */
enum unwind_cfa {
	UNWIND_CFA_NONE = 0,
	UNWIND_CFA_UNSUPPORTED = 1,
	UNWIND_CFA_END = 2,
	UNWIND_CFA_SP = 3,	  /* sp + cfa_offset */
	UNWIND_CFA_FP = 4,	  /* fp + cfa_offset */
	UNWIND_CFA_SP_MEMORY = 5, /* *(sp + low) + high */
	UNWIND_CFA_FP_MEMORY = 6, /* *(fp + low) + high */
	UNWIND_CFA_PLT = 7,	  /* sp + low + ((pc & 15) >= high ? 8 : 0); x86-64 */
};

/* Where the return address is. */
enum unwind_ra {
	UNWIND_RA_CFA = 0,	/* *(CFA - 8); x86-64's only ordinary one */
	UNWIND_RA_CONTEXT = 1,	/* of a signal frame: *(sp + low + 8), after the saved sp */
	UNWIND_RA_ALONE = 2,	/* *(CFA + fp_offset); fp is UNWIND_FP_SAME */
	UNWIND_RA_PAIR = 3,	/* 8 bytes after the saved fp; arm64's frame record */
	UNWIND_RA_REGISTER = 4, /* a leaf's, in rdi (vfork of a C library) or arm64's x30; CFA_SP,
				   fp is UNWIND_FP_SAME */
};

/* Where the caller's frame pointer is. */
enum unwind_fp {
	UNWIND_FP_SAME = 0,    /* unchanged */
	UNWIND_FP_CFA = 1,     /* *(CFA + fp_offset) */
	UNWIND_FP_FP = 2,      /* *(fp + fp_offset) */
	UNWIND_FP_SP = 3,      /* *(sp + fp_offset) */
	UNWIND_FP_UNKNOWN = 4, /* lost: a rule that needs fp later ends the stack */
};

/* The parts of unwind_rule.saved. */
#define UNWIND_SAVED(ra, fp) ((__u8)((ra) | (fp) << 3))
#define UNWIND_SAVED_RA(s)   ((s)&7)
#define UNWIND_SAVED_FP(s)   ((s) >> 3 & 7)
#define UNWIND_SAVED_EXACT   0x40 /* a signal frame: look up the caller's pc itself, not pc - 1 */
#define UNWIND_SAVED_SIGNED  0x80 /* arm64: the return address carries an authentication code */

/* A rule. All zeros: UNWIND_RULE_NONE. */
struct unwind_rule {
	__s32 cfa_offset;
	__s16 fp_offset;
	__u8 cfa;   /* enum unwind_cfa */
	__u8 saved; /* UNWIND_SAVED and flags */
};

#define UNWIND_HALVES(low, high) ((__s32)((__u32)(__u16)(low) | (__u32)(__u16)(high) << 16))
#define UNWIND_LOW(offset)	 ((__s16)(__u16)((__u32)(offset)&0xffff))
#define UNWIND_HIGH(offset)	 ((__s16)(__u16)((__u32)(offset) >> 16))

/*
 * A word of the page index: the number of the last row at or before the page's first byte, and the
 * number of rows from there that begin before the page's end (1 to 256).
 */
#define UNWIND_PAGE(first, count) ((__u32)(first) << 9 | (__u32)(count))
#define UNWIND_PAGE_FIRST(word)	  ((__u32)(word) >> 9)
#define UNWIND_PAGE_COUNT(word)	  ((__u32)(word)&511)

/*
 * Where the table of a file is in the pool of 8-byte elements. An element of the page index holds
 * two words.
 */
struct unwind_place {
	__u32 rows; /* element of the first row */
	__u32 row_count;
	__u32 pages;	  /* first element of the page index */
	__u32 page_count; /* its words */
};

/*
 * Writers of each member. The consumer writes the rows and rules above, struct unwind_file,
 * unwind_process and unwind_claims, and the kernel side trusts none of them. Only the kernel side
 * writes struct unwind_ranges: the program `ranges` fills it from the process's actual mappings.
 * Table number i of a process is element i of both unwind_ranges and unwind_process; target.unwind
 * is i + 1.
 */
#define UNWIND_RANGES	   512	/* executable mappings in a table; a power of two */
#define UNWIND_RANGE_STEPS 9	/* halvings until one range is left */
#define UNWIND_FILES_MAX   4096 /* compiled files at once */

/* A file's table does not change while a published table of a process refers to it. */
struct unwind_file {
	struct unwind_place place;
};

enum unwind_kind {
	UNWIND_KIND_NONE = 0,	    /* no information: the walk ends there */
	UNWIND_KIND_ROWS = 1,	    /* by the rows of `file`; without a row, by the frame pointer */
	UNWIND_KIND_FP = 2,	    /* by the frame pointer: code made at run time, Go */
	UNWIND_KIND_ROWS_ALONE = 3, /* by the rows of `file`; without a row, the walk ends */
};

/* The consumer's information on the range with the same number. */
struct unwind_mapping {
	__u64 base; /* address of the file's table base in the process */
	__u32 file; /* number in `unwind_files` */
	__u32 kind; /* enum unwind_kind */
};

struct unwind_process {
	__u64 published; /* the table_generation that `mappings` belong to; 0: none */
	__u64 quiet_ns;	 /* shortest time between two EVENT_UNMAPPED */
	struct unwind_mapping mappings[UNWIND_RANGES];
};

/*
 * A range of executable memory in one word, so that a reader never sees half of one: its first page
 * and its number of pages, in pages of 4 KiB on every machine.
 */
#define UNWIND_RANGE_SHIFT	  12
#define UNWIND_RANGE_PAGE_BITS	  20
#define UNWIND_RANGE_PAGES_MAX	  ((1ull << UNWIND_RANGE_PAGE_BITS) - 1) /* just below 4 GiB */
#define UNWIND_RANGE(page, pages) ((__u64)(page) << UNWIND_RANGE_PAGE_BITS | (__u64)(pages))
#define UNWIND_RANGE_PAGE(range)  ((__u64)(range) >> UNWIND_RANGE_PAGE_BITS)
#define UNWIND_RANGE_PAGES(range) ((__u64)(range)&UNWIND_RANGE_PAGES_MAX)

struct unwind_ranges {
	__u64 table_generation; /* never reused; 0: no table, or it is being filled */
	__u64 start_ns;		/* of the process, as in struct process_key */
	__u64 image;		/* task_struct.self_exec_id: a new image needs a new table */
	__u64 unmapped_ns;	/* when the last EVENT_UNMAPPED was sent for it */
	__u32 tgid;
	__u32 count;
	__u32 busy; /* 1: the program `ranges` is filling it */
	__u32 pad;
	__u64 ranges[UNWIND_RANGES]; /* ascending */
	__u64 checks[UNWIND_RANGES]; /* number of each range's file (bpf/mappings/mapped_file.h):
					walks compare it with the present mapping there; 0: memory
				      */
};

/*
 * A request of the consumer to the iterator `ranges`: to copy these mappings of this process into
 * this table.
 */
struct unwind_claims {
	__u64 start_ns;
	__u32 tgid;
	__u32 table;
	__u32 count;
	__u32 pad;
	__u64 starts[UNWIND_RANGES]; /* an address in each mapping, ascending */
	__u64 inodes[UNWIND_RANGES]; /* of the mapped file; 0: it has none */
	struct runtime_claim runtime;
};

/* What the iterator `ranges` writes. */
struct ranges_record {
	__u64 table_generation;
	__u32 table;
	__u32 count;
	__u32 missed;  /* claims outside every executable mapping, or not looked up because the
			  process was changing its mappings */
	__u32 cut;     /* claims too large to be stored whole */
	__u32 image;   /* as in struct sample, when the filling began */
	__u32 runtime; /* enum runtime_state */
};

enum unwind_end {
	UNWIND_END_NONE = 0, /* the walk goes on */
#define UNWIND_END(id, word, help) UNWIND_END_##id,
#include "shared/abi/unwind_ends.def"
#undef UNWIND_END
	UNWIND_END_COUNT_
};

/*
 * Set in an address of a walked stack (SAMPLE_UNWOUND), after the leaf: a signal interrupted this
 * frame, and the address is that of the next instruction, not a return address. No address of user
 * memory has this bit.
 */
#define SAMPLE_INTERRUPTED (1ull << 63)

/*
 * Also set in an address of a walked stack: SAMPLE_FOLLOWED, the frame pointer led to this address.
 * SAMPLE_ADJACENT in addition: the memory between this frame and the one below holds no return
 * address, so no caller is missing there.
 */
#define SAMPLE_FOLLOWED (1ull << 62)
#define SAMPLE_ADJACENT (1ull << 61)

/* The address without these three bits. */
#define SAMPLE_ADDRESS(word) ((word) & ~(SAMPLE_INTERRUPTED | SAMPLE_FOLLOWED | SAMPLE_ADJACENT))

#endif
