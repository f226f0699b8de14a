/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * between.c: functions that are built without call frame information, and mostly without frame
 * pointers. around.c calls them.
 */
#include <stdint.h>

extern volatile uint64_t between_sum;
void between_leaf(void);
void between_middle(void);
void between_top(void);

__attribute__((noipa)) void between_leaf(void)
{
	/* Its memory has gcc set up a frame also in a leaf. */
	for (volatile unsigned int i = 0; i < 30000; i++)
		between_sum += i;
}

__attribute__((noipa)) void between_middle(void)
{
	between_leaf();
	between_sum++;
}

__attribute__((noipa)) void between_top(void)
{
	between_middle();
	between_sum++;
}
