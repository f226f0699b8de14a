/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/signals/pool_name.h"

#include <string.h>

void pool_name_of(const char *comm, char name[COMM_BYTES])
{
	size_t n = 0;

	memset(name, 0, COMM_BYTES);
	for (size_t i = 0; i < COMM_BYTES - 1 && comm[i]; i++)
		if (comm[i] < '0' || comm[i] > '9')
			name[n++] = comm[i];
}
