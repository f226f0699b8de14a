/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/tools/environment.h"

#include <stddef.h>
#include <string.h>

#include "shared/tools/macro.h"

static const char *const names[] = { "PATH=", "LANG=", "TERM=", "LISTEN_PID=", "LISTEN_FDS=" };

_Static_assert(ARRAY_SIZE(names) < ENVIRONMENT_ROOM,
	       "each variable once, and the NULL behind them");

char *const *environment_small(char *const *all, char *small[ENVIRONMENT_ROOM])
{
	size_t count = 0;

	for (size_t n = 0; n < ARRAY_SIZE(names); n++)
		for (size_t i = 0; all && all[i]; i++)
			if (!strncmp(all[i], names[n], strlen(names[n]))) {
				small[count++] = all[i];
				break;
			}
	small[count] = NULL;
	return small;
}
