/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* long_wait_abi.h: the part of the ABI (abi.h) that is about single long waits and their wakers. */
#ifndef TROCAR_SHARED_ABI_LONG_WAIT_ABI_H
#define TROCAR_SHARED_ABI_LONG_WAIT_ABI_H

#include "shared/abi/abi.h"

#define LONG_WAITS_DEFAULT 65536      /* long waits that are kept at a time */
#define LONG_WAIT_NS	   1000000ull /* shorter waits are only counted in sums */

/*
 * The length of a wait is checked at its end, which reads the clock. If LONG_WAIT_ASKED waits on a
 * CPU were short within LONG_WAIT_WINDOW_NS, the clock is read there only for a wait that had
 * lasted LONG_WAIT_NS when the clock was last read (bpf/locks/long_wait.h).
 */
#define LONG_WAIT_ASKED	    32
#define LONG_WAIT_WINDOW_NS 4000000ull

/* The waker that ended a wait: long_wait_ends.def. Rows are appended. */
enum long_wait_end {
#define LONG_WAIT_END(id, json, help) LONG_WAIT_##id,
#include "shared/abi/long_wait_ends.def"
#undef LONG_WAIT_END
	LONG_WAIT_ENDS_
};

/* Value of `long_waits`: one wait of one thread. The key is a serial number. */
struct long_wait {
	__u64 begin_ns; /* when the thread left its CPU */
	__u64 end_ns;	/* when the thread was woken */
	__u64 address;	/* lock wait: address of the futex, as in struct lock_key; else 0 */
	__u32 tid, tgid;
	__u32 by_tid; /* for LONG_WAIT_THREAD, _KERNEL and _SIGNAL; 0: outside the --scope */
	__u16 slot;   /* of the nearest watch */
	__u8 part;    /* enum account_part: the kind of wait */
	__u8 end;     /* enum long_wait_end */
	char by_comm[COMM_BYTES];
};

#endif
