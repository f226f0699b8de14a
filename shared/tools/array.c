/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/tools/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/macro.h"

#define FIRST 16 /* elements */

int array_reserve(void *items, size_t *space, size_t wanted, size_t bytes)
{
	size_t more = MAX(*space * 2, (size_t)FIRST);
	void *at;

	if (wanted <= *space)
		return 0;
	more = MAX(more, wanted);
	memcpy(&at, items, sizeof(at));
	at = reallocarray(at, more, bytes);
	if (!at)
		return -ENOMEM;
	memcpy(items, &at, sizeof(at));
	*space = more;
	return 0;
}
