/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wrap.h: a stream that breaks long lines at blanks, so that a caller that prints a sentence need
 * not know the width of the terminal. Continuation lines are aligned with the text of the line:
 * after its indentation, or after the last wide gap near its begin (" --json print the ...").
 */
#ifndef TROCAR_CTL_CLI_WRAP_H
#define TROCAR_CTL_CLI_WRAP_H

#include <stdio.h>

/* At the begin of a line: the line is copied unbroken. The character itself is not printed. */
#define WRAP_NOT "\x01"

/*
 * Returns a stream that prints on `out` with lines of at most `columns`; longer words stay whole.
 * Close it with wrap_close, which leaves `out` open. NULL: no memory.
 */
FILE *wrap_open(FILE *out, unsigned int columns);
void wrap_close(FILE *wrapping);

/* Returns WRAP_NOT if lines are broken, else "". */
const char *wrap_not(void);

#endif
