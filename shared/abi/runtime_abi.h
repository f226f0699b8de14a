/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * runtime_abi.h: the part of the ABI (abi.h) that is about frames of language runtimes. The
 * consumer claims where the symbols of a runtime are in a mapped file. The kernel side checks the
 * claim (bpf/runtimes/runtime_facts.h), walks the frames of a thread, and names each code object
 * once (bpf/runtimes/runtime_names.h).
 */
#ifndef TROCAR_SHARED_ABI_RUNTIME_ABI_H
#define TROCAR_SHARED_ABI_RUNTIME_ABI_H

#include <linux/types.h>

#define RUNTIME_FRAMES_MAX 128 /* frames of one stack */

/* Bytes that are copied of the strings and the line table of a code object. */
#define RUNTIME_NAME_BYTES  128
#define RUNTIME_FILE_BYTES  192
#define RUNTIME_TABLE_BYTES 1024

/* The symbols of CPython that a claim names. The last one is of 3.11 and newer. */
#define RUNTIME_SYMBOLS 6

#define RUNTIME_SYMBOL_NAMES \
	"_PyRuntime", "PyCode_Type", "PyUnicode_Type", "PyBytes_Type", "PyFrame_Type", "Py_Version"

enum runtime_symbol {
	RUNTIME_SYMBOL_STATE,
	RUNTIME_SYMBOL_CODE,
	RUNTIME_SYMBOL_STRING,
	RUNTIME_SYMBOL_BYTES,
	RUNTIME_SYMBOL_FRAME,
	RUNTIME_SYMBOL_VERSION,
};

/* The consumer's claim that a file is a runtime. */
struct runtime_claim {
	__u64 start; /* address of the file's first byte in the process; 0: no claim */
	__u32 symbols[RUNTIME_SYMBOLS]; /* index in its table of dynamic symbols; 0: none */
};

enum runtime_state {
#define RUNTIME_STATE(id, word, help) RUNTIME_STATE_##id,
#include "shared/abi/runtime_states.def"
#undef RUNTIME_STATE
	RUNTIME_STATES_
};

enum runtime_end {
#define RUNTIME_END(id, word, help) RUNTIME_END_##id,
#include "shared/abi/runtime_ends.def"
#undef RUNTIME_END
	RUNTIME_ENDS_
};

/*
 * The last part of a record with SAMPLE_RUNTIME: this, then `frames` words of 8 bytes, the
 * innermost frame first.
 */
struct sample_runtime {
	__u16 frames;
	__u8 end; /* enum runtime_end */
	__u8 pad;
	__u32 version; /* of CPython: 0x030b is 3.11 */
};

/*
 * A frame: the number of its code object (0: it has no name yet), the instruction, and whether the
 * evaluation loop's function returns after this frame. The instruction is the offset of the last
 * one that began, in bytes, plus 2: of a frame that has not begun it is 0.
 */
#define RUNTIME_RUN_ENDS	 1ull
#define RUNTIME_INSTRUCTION_BITS 29
#define RUNTIME_INSTRUCTION_MAX	 ((1u << RUNTIME_INSTRUCTION_BITS) - 1) /* unknown */
#define RUNTIME_WORD(number, instruction, flags) \
	((__u64)(number) << 32 | (__u64)(instruction) << 3 | (flags))
#define RUNTIME_NUMBER(word)	  ((__u32)((word) >> 32))
#define RUNTIME_INSTRUCTION(word) ((__u32)(word) >> 3)

/* How the characters of a string are stored. */
enum runtime_text {
	RUNTIME_TEXT_ASCII = 0,
	RUNTIME_TEXT_LATIN1 = 1,
	RUNTIME_TEXT_UCS2 = 2,
	RUNTIME_TEXT_UCS4 = 4,
};

/* An entry of the ring `runtime_names`: a code object. The record ends after its line table. */
struct runtime_name {
	__u64 start_ns; /* of the process */
	__u32 tgid;
	__u32 number; /* never reused */
	__s32 first_line;
	__u32 version;	  /* as in struct sample_runtime */
	__u32 name_bytes; /* whole lengths, also above the copied parts */
	__u32 file_bytes;
	__u32 table_bytes;
	__u8 name_text, file_text; /* enum runtime_text */
	__u16 pad;
	__u8 name[RUNTIME_NAME_BYTES];
	__u8 file[RUNTIME_FILE_BYTES];
	__u8 table[RUNTIME_TABLE_BYTES];
};

#endif
