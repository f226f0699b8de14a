/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * demangle.h: turns mangled names into readable ones: C++ (Itanium ABI), Rust (legacy and v0) and
 * D, by libiberty. It leaves out parameter lists, as perf(1) does, cuts symbol versions
 * ("memcpy@@GLIBC_2.14") off, and keeps "@plt". Mangled names are foreign: a short name may expand
 * to an endless text, because its parts refer to each other. So the input, the output and the
 * number of such references are limited; a name beyond a limit is not demangled. Fuzzed
 * (tests/fuzz/shared/demangle.c).
 */
#ifndef TROCAR_SHARED_TOOLS_DEMANGLE_H
#define TROCAR_SHARED_TOOLS_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

#define DEMANGLE_IN_MAX	   1024 /* bytes of a mangled name; libiberty accepts no more */
#define DEMANGLE_OUT_BYTES 768	/* NUL included; a longer text is cut */

/* A name with more references to its own parts may expand without end, and is not demangled. */
#define DEMANGLE_PACK_REFERENCES       40 /* C++ with parameter packs: searched for */
#define DEMANGLE_CONVERSION_REFERENCES 16 /* C++ with conversion operators: read twice */
#define DEMANGLE_D_REFERENCES	       12

/*
 * Writes the readable name of symbol `raw` to `text`. False if there is no other name than `raw`:
 * it is not mangled, malformed or beyond a limit. One thread at a time.
 */
bool demangle(const char *raw, char text[DEMANGLE_OUT_BYTES]);

#endif
