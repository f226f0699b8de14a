/* SPDX-License-Identifier: BSD-2-Clause */
/* macro.h: macros that every folder uses. */
#ifndef TROCAR_SHARED_TOOLS_MACRO_H
#define TROCAR_SHARED_TOOLS_MACRO_H

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define MIN(a, b)                                  \
	({                                         \
		__typeof__(a) min_a_ = (a);        \
		__typeof__(b) min_b_ = (b);        \
		min_a_ < min_b_ ? min_a_ : min_b_; \
	})

#define MAX(a, b)                                  \
	({                                         \
		__typeof__(a) max_a_ = (a);        \
		__typeof__(b) max_b_ = (b);        \
		max_a_ > max_b_ ? max_a_ : max_b_; \
	})

/* Rounds up to a power of two. */
#define ALIGN_UP(n, to) (((n) + (to)-1) & ~((__typeof__(n))(to)-1))

#define NSEC_PER_SEC  1000000000ULL
#define NSEC_PER_MSEC 1000000ULL
#define NSEC_PER_USEC 1000ULL
#define MSEC_PER_SEC  1000ULL

#endif
