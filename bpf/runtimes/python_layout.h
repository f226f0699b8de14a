/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* python_layout.h: the layouts of CPython's data (shared/abi/python_layouts.def). */
#ifndef TROCAR_BPF_RUNTIMES_PYTHON_LAYOUT_H
#define TROCAR_BPF_RUNTIMES_PYTHON_LAYOUT_H

#include <linux/types.h>

#define PYTHON_LAYOUTS 16 /* a power of two, above the number of rows */

struct python_layout {
	__u32 version, state_bytes;
	__u16 code_bytes, interpreters, key, threads, thread, outer, frame;
	__u16 frame_bytes, previous, code, at, unit, owner, entry;
	__u16 line, file, name, table, body, ascii, other;
	__u16 pad;
};

/*
 * In memory: with constants the verifier would check all later code for each row. Rows that are all
 * zero are no layout.
 */
static const volatile struct python_layout python_layouts[PYTHON_LAYOUTS] = {
#define PYTHON_LAYOUT(...) { __VA_ARGS__, 0 },
#include "shared/abi/python_layouts.def"
#undef PYTHON_LAYOUT
};

#define PYTHON_OBJECTS 0x030b /* before this version frames are objects */
#define PYTHON_COOKIE  0x030d /* from this version on _PyRuntime begins with a cookie */

#endif
