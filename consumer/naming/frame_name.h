/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frame_name.h: names a stack's frames and judges whether the stack is complete. Report thread
 * only.
 */
#ifndef TROCAR_CONSUMER_NAMING_FRAME_NAME_H
#define TROCAR_CONSUMER_NAMING_FRAME_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/sampling/stack_table.h"
#include "consumer/symbols/symbols.h"
#include "shared/abi/unwind_abi.h"

enum quality {
	/*
	 * Unwound to the outermost frame; by frame pointers: to an entry point (frame_entry.h).
	 */
	QUALITY_COMPLETE,
	QUALITY_TRUNCATED, /* deeper than a sample can be */
	QUALITY_BROKEN,	   /* the chain ended elsewhere */
	QUALITY_COUNT_,
};

/* One named frame; strings live until the next symbols_trim. */
struct named_frame {
	const char *fn;	    /* NULL: unknown */
	const char *raw;    /* fn as in the symbol table, if fn is demangled; else NULL */
	const char *reason; /* the reason if fn is NULL */
	const char *after;  /* the next function of the file if fn is NULL; NULL: unknown */
	const char *module; /* path, "kernel", a kernel module, or NULL: unknown */
	const char *kind;   /* "kernel", "user", "jit", "runtime" */
	/* Why the file has no unwind rows (symbols_rowless); "": it has rows; NULL: unknown. */
	const char *rowless;
	uint8_t build_id[SYMBOLS_BUILD_ID_MAX];
	uint8_t build_id_bytes;
	uint64_t offset;
	uint64_t start; /* of fn in its file; only with fn and a file */
	bool has_offset;
	bool interpreter; /* code of a language runtime itself */
	int32_t line;	  /* of a frame of a runtime, in `module`; 0: unknown */
	/* Set by frame_proof_judge: */
	bool entry;    /* no function calls it, so a chain ends there */
	bool unproved; /* a caller may be missing between it and the previous frame */
	bool exact;    /* not the leaf, but the offset is that of the next instruction to run */
};

/* Returns whether the frame is of a language runtime: a function of the application. */
bool frame_name_is_runtime(const struct named_frame *f);

/*
 * Returns the outermost native frame: functions that are interpreted may follow a native stack that
 * ends too early. NULL: there is none.
 */
const struct named_frame *frame_name_root(const struct named_frame *frames, size_t n);

/*
 * Writes " at app.py:12", the line of a function of the application; nothing for line 0. Returns
 * the length.
 */
int frame_name_say_line(const char *file, int32_t line, char *text, size_t space);

/*
 * Returns whether frame `i` of `stack` has called the frame before it, so that its offset is a
 * return address. False for a leaf, for code that a signal interrupted, and for the code to which
 * its handler returns.
 */
bool frame_name_is_caller(const struct stack *stack, size_t i);

/* Names frame `i` of `stack`, after runtime_merge_stack. */
void frame_name_frame(struct symbols *symbols, const struct stack *stack, size_t i,
		      struct named_frame *ret_frame);

/*
 * Returns the quality of a stack with these `n` named frames, leaf first (0 without memory for
 * them), and sets *ret_reason to the reason or NULL. Call frame_proof_judge before.
 */
enum quality frame_name_quality(const struct stack *stack, const struct named_frame *frames,
				size_t n, const char **ret_reason);

/* Returns the quality as frame_name_quality does, of the native frames alone. */
enum quality frame_name_native_quality(const struct stack *stack, const struct named_frame *frames,
				       size_t n, const char **ret_reason);

/*
 * Returns why the stack with the outermost frame `root` (NULL: none) was not walked by unwind rows
 * there, as named_frame.rowless. A stack without a table was not, even if the file has rows.
 */
const char *frame_name_rowless(const struct stack *stack, const struct named_frame *root);

/*
 * Returns the index of the first frame before which a caller may be missing; 0 if there is none.
 * Only a stack that reached its outermost frame can have one: in any other stack callers are known
 * to be missing.
 */
size_t frame_name_gap(const struct stack *stack, const struct named_frame *frames, size_t n);

/*
 * Returns how the walk by unwind rows ended: stop_reason of the stack, but UNWIND_END_LEAF if the
 * only frame is no entry point.
 */
enum unwind_end frame_name_end(const struct stack *stack, const struct named_frame *frames,
			       size_t n);

const char *frame_name_of_quality(enum quality quality);

/*
 * Returns whether a module belongs to the C or C++ library, by the name of its file: its functions
 * wait on behalf of their callers.
 */
bool frame_name_is_library(const char *module);

#endif
