/* SPDX-License-Identifier: BSD-2-Clause */
/* call_names.h: names of system calls on this machine. */
#ifndef TROCAR_CONSUMER_EVIDENCE_TIME_CALL_NAMES_H
#define TROCAR_CONSUMER_EVIDENCE_TIME_CALL_NAMES_H

#include <stdint.h>

/*
 * Returns the name of this machine's system call `number`; NULL if it is newer, or is no system
 * call (enum account_call).
 */
const char *call_names_get(uint32_t number);

#endif
