/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/cli/confine.h"

#include <stddef.h>

static int (*confine)(enum confine what);
static unsigned int done; /* bits of enum confine */

void confine_by(int (*call)(enum confine what))
{
	confine = call;
}

int confine_now(enum confine what)
{
	int r = confine && !(done & 1u << what) ? confine(what) : 0;

	if (r == 0)
		done |= 1u << what;
	return r;
}
