/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * library.c: a shared library of about a thousand functions, as a plugin or a driver has. The bench
 * makes copies of it with build-ids of their own; bench-libraries spins in one function of each.
 */
#include <stdint.h>

#define ONE(n)                              \
	uint64_t work_##n(uint64_t);        \
	uint64_t work_##n(uint64_t x)       \
	{                                   \
		return x * 2654435761u + n; \
	}
#define TEN(n)    \
	ONE(n##0) \
	ONE(n##1) ONE(n##2) ONE(n##3) ONE(n##4) ONE(n##5) ONE(n##6) ONE(n##7) ONE(n##8) ONE(n##9)
#define HUNDRED(n) \
	TEN(n##0)  \
	TEN(n##1) TEN(n##2) TEN(n##3) TEN(n##4) TEN(n##5) TEN(n##6) TEN(n##7) TEN(n##8) TEN(n##9)

HUNDRED(1)
HUNDRED(2)
HUNDRED(3)
HUNDRED(4)
HUNDRED(5)
HUNDRED(6)
HUNDRED(7)
HUNDRED(8)
HUNDRED(9)

uint64_t spin_in_library(uint64_t turns);
uint64_t spin_in_library(uint64_t turns)
{
	volatile uint64_t x = 1;

	while (turns--)
		x = work_100(x);
	return x;
}
