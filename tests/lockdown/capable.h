/* SPDX-License-Identifier: BSD-2-Clause */
/* capable.h: the capability rows of the broker, each tried with it and without it. */
#ifndef TROCAR_TESTS_LOCKDOWN_CAPABLE_H
#define TROCAR_TESTS_LOCKDOWN_CAPABLE_H

#include <stdbool.h>

/* Calls `verdict` for each row, and for a row without a case. Root. */
void capable_try(void (*verdict)(bool fine, const char *what, const char *name, const char *why));

#endif
