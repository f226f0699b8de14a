/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* long_wait_abi.h: the part of the ABI (abi.h) that is about single long waits and their wakers. */
#ifndef TROCAR_SHARED_ABI_LONG_WAIT_ABI_H
#define TROCAR_SHARED_ABI_LONG_WAIT_ABI_H

#include "shared/abi/abi.h"

#define LONG_WAITS_DEFAULT 65536      /* that are kept at a time */
#define LONG_WAIT_NS	   1000000ull /* shorter ones are sums alone */

/*
 * Whether a wait was long is asked at its end. On each CPU, of so many in this time that turned out
 * short; then again of those alone that began so long before the clock was last read there.
 */
#define LONG_WAIT_ASKED	    32
#define LONG_WAIT_WINDOW_NS 4000000ull

/* Who ended a wait: long_wait_ends.def. Rows are appended. */
enum long_wait_end {
#define LONG_WAIT_END(id, json, help) LONG_WAIT_##id,
#include "shared/abi/long_wait_ends.def"
#undef LONG_WAIT_END
	LONG_WAIT_ENDS_
};

/* Value of `long_waits`; the key is a number: one wait of one thread. */
struct long_wait {
	__u64 begin_ns; /* when it left its CPU */
	__u64 end_ns;	/* when it was woken */
	__u64 address;	/* of a wait for a lock: of the futex, as in struct lock_key; else 0 */
	__u32 tid, tgid;
	__u32 by_tid; /* of LONG_WAIT_THREAD, _KERNEL and _SIGNAL; 0: outside of the --scope */
	__u16 slot;   /* of the nearest watch */
	__u8 part;    /* enum account_part: what it waited for */
	__u8 end;     /* enum long_wait_end */
	char by_comm[COMM_BYTES];
};

#endif
