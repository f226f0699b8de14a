/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/preflight/preflight_row.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void preflight_row_failed(struct preflight_row *row, int error)
{
	bool denied = error == EPERM || error == EACCES;

	row->state = denied && geteuid() != 0 ? PREFLIGHT_UNKNOWN : PREFLIGHT_MISSING;
	if (row->state == PREFLIGHT_UNKNOWN) {
		PREFLIGHT_ROW_SAY(row, "no permission to ask (%s)", strerror(error));
		row->how = "run it as root to find out";
	} else {
		PREFLIGHT_ROW_SAY(row, "%s", strerror(error));
	}
}

const char *preflight_row_state(const struct preflight_row *row)
{
	static const char *const names[] = {
		[PREFLIGHT_PRESENT] = "present",
		[PREFLIGHT_MISSING] = "missing",
		[PREFLIGHT_UNKNOWN] = "unknown",
	};

	return names[row->state];
}
