/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * demangle.h: names as their programmers wrote them: C++ (Itanium ABI), Rust (legacy and v0) and D,
 * by libiberty. Parameter lists are left out, as perf(1) leaves them out. Symbol versions
 * ("memcpy@@GLIBC_2.14") are cut off, "@plt" stays. Mangled names are foreign: a short one may
 * stand for a text without end, because its parts refer to each other. So the input, the output and
 * what may refer to what are walled; a name beyond a wall stays as it is. Fuzzed
 * (tests/fuzz/shared/demangle.c).
 */
#ifndef TROCAR_SHARED_TOOLS_DEMANGLE_H
#define TROCAR_SHARED_TOOLS_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

#define DEMANGLE_IN_MAX	   1024 /* bytes of a mangled name; libiberty goes no further */
#define DEMANGLE_OUT_BYTES 768	/* NUL included; a longer text is cut here */

/* A name that refers to its own parts this often may be one that never ends, and stays. */
#define DEMANGLE_PACK_REFERENCES       40 /* C++ with parameter packs, which are searched for */
#define DEMANGLE_CONVERSION_REFERENCES 16 /* C++ with conversion operators: read twice each */
#define DEMANGLE_D_REFERENCES	       12

/*
 * Writes the readable name of symbol `raw` to `text`; false when it is `raw` itself, because it is
 * not mangled, not sound or beyond a wall. One thread at a time.
 */
bool demangle(const char *raw, char text[DEMANGLE_OUT_BYTES]);

#endif
