/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wrap.h: a stream that breaks long lines at blanks, so that a caller that prints a sentence need
 * not know the width of the terminal. What follows stands below the text of the line: behind its
 * indentation, or behind the last wide gap at its begin (" --json print the ...").
 */
#ifndef TROCAR_CTL_CLI_WRAP_H
#define TROCAR_CTL_CLI_WRAP_H

#include <stdio.h>

/* At a line's begin: it is to be copied, and stays as long as it is. It is not printed. */
#define WRAP_NOT "\x01"

/*
 * Returns a stream that prints on `out` with lines of at most `columns`; words that are longer stay
 * whole. Close it with wrap_close, which leaves `out` open. NULL: no memory.
 */
FILE *wrap_open(FILE *out, unsigned int columns);
void wrap_close(FILE *wrapping);

/* Returns WRAP_NOT where lines are broken, else "". */
const char *wrap_not(void);

#endif
