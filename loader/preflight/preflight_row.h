/* SPDX-License-Identifier: BSD-2-Clause */
/* preflight_row.h: the result for one need, and its texts. */
#ifndef TROCAR_LOADER_PREFLIGHT_PREFLIGHT_ROW_H
#define TROCAR_LOADER_PREFLIGHT_PREFLIGHT_ROW_H

#include <stdbool.h>
#include <stdio.h>

enum preflight_state {
	PREFLIGHT_PRESENT,
	PREFLIGHT_MISSING,
	PREFLIGHT_UNKNOWN, /* the caller is not allowed to find out */
};

struct preflight_row {
	const char *name;
	bool required;
	enum preflight_state state;
	char detail[256]; /* the finding, one line; "" when there is no fault */
	const char *lost; /* the loss without it */
	const char *how;  /* how to get it */
};

/* Sets the detail, as printf(3) does. */
#define PREFLIGHT_ROW_SAY(row, ...) snprintf((row)->detail, sizeof((row)->detail), __VA_ARGS__)

/*
 * Sets the state after the probe failed with `error` (an errno): missing; or unknown if the process
 * is not root and the error is EPERM or EACCES, which proves nothing.
 */
void preflight_row_failed(struct preflight_row *row, int error);

/* Returns "present", "missing" or "unknown". */
const char *preflight_row_state(const struct preflight_row *row);

#endif
