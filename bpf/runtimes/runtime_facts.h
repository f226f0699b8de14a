/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * runtime_facts.h: the proved facts about the language runtime of a process. The consumer claims
 * the indices of symbols; the kernel side reads the mapped file and decides (runtime_check.h). The
 * facts are private, so a reader of another process's memory follows only pointers that begin at a
 * proved place.
 */
#ifndef TROCAR_BPF_RUNTIMES_RUNTIME_FACTS_H
#define TROCAR_BPF_RUNTIMES_RUNTIME_FACTS_H

#include "bpf/maps/maps.h"
#include "shared/abi/abi.h"

#define RUNTIME_WANTED 16 /* a power of two */

/* The facts, in the form that a walk copies. */
struct runtime_proved {
	__u64 table_generation; /* of the table that they were checked with; 0: none */
	__u64 start_ns;		/* of the process that was checked, */
	__u32 tgid;
	__u32 image;  /* and its image: forked children share its names */
	__u32 layout; /* number in python_layouts */
	__u32 pad;
	__u64 values[RUNTIME_SYMBOLS]; /* addresses of the symbols; 0: none */
};

/* Of the table of a process with the same number. All zeros: none. */
struct runtime_facts {
	struct runtime_proved proved;
	/* Names copied in the present second, of all threads of the process. */
	__u32 second, copied;
	/*
	 * Code objects of waiting threads without a name, by process: forked children share the
	 * table. A tick of the process copies their names.
	 */
	__u32 has_wanted, pad; /* 1: there may be some in `wanted` */
	struct {
		__u64 object; /* 0: none */
		__u32 tgid, pad;
	} wanted[RUNTIME_WANTED];
};

/* Private. As many elements as `unwind_ranges`. */
__weak MAP(ARRAY, runtime_facts, __u32, struct runtime_facts, TABLES_DEFAULT);

#endif
