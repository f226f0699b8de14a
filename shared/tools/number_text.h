/* SPDX-License-Identifier: BSD-2-Clause */
/* number_text.h: numbers for sentences: without exponent, and in a unit in which they are not 0. */
#ifndef TROCAR_SHARED_TOOLS_NUMBER_TEXT_H
#define TROCAR_SHARED_TOOLS_NUMBER_TEXT_H

#include <stdint.h>

#define NUMBER_TEXT_BYTES 32

/*
 * Writes a non-negative number with `digits` significant digits, at most 4, and all digits before
 * the point: "0.45", "12.5", "1833". Returns `text`.
 */
const char *number_text(double number, int digits, char text[NUMBER_TEXT_BYTES]);

/* Writes "412 ns", "16.4 us", "4.19 ms", "1833 ms". Returns `text`. */
const char *number_text_time(uint64_t ns, char text[NUMBER_TEXT_BYTES]);

/* Writes "8 bytes", "1 byte", "2.0 KiB", "16.5 MiB". Returns `text`. */
const char *number_text_bytes(uint64_t bytes, char text[NUMBER_TEXT_BYTES]);

#endif
