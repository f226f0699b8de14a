/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* symbol_abi.h: the part of the ABI (abi.h) that is about the kernel's own code. */
#ifndef TROCAR_SHARED_ABI_SYMBOL_ABI_H
#define TROCAR_SHARED_ABI_SYMBOL_ABI_H

#include "shared/abi/abi.h"

/* What `ksyms` writes: one record per text symbol, in the order of /proc/kallsyms. */
struct ksym_record {
	__u64 address;
	__u16 name_bytes;   /* NUL included */
	__u16 module_bytes; /* NUL included; 1 for the kernel itself */
	__u32 record_bytes; /* of the whole record, padded to 8 */
	char names[];	    /* name, NUL, module, NUL */
};

/* What `bpf_code` writes: one record per compiled BPF program, or per function of one. */
struct bpf_code_record {
	__u64 start, end; /* kernel addresses; `ksyms` has the name of `start` */
	__u64 load_ns;	  /* when it was loaded, CLOCK_BOOTTIME */
};

#endif
