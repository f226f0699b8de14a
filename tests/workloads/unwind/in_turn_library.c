/* SPDX-License-Identifier: BSD-2-Clause */
/* in_turn_library.c: LETTER names its functions; all libraries of this source have one layout. */
#include <stdint.h>

#define JOIN(letter, name)  JOIN_(letter, name)
#define JOIN_(letter, name) letter##_##name

static volatile uint64_t sum;

__attribute__((noipa, aligned(64))) void JOIN(LETTER, work)(void);
__attribute__((noipa, aligned(64))) void JOIN(LETTER, middle)(void);
__attribute__((noipa, aligned(64))) void plug(void);

void JOIN(LETTER, work)(void)
{
	for (int i = 0; i < 100000; i++)
		sum += (uint64_t)i;
}

void JOIN(LETTER, middle)(void)
{
	JOIN(LETTER, work)();
	sum++;
}

void plug(void)
{
	JOIN(LETTER, middle)();
	sum++;
}
