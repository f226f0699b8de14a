/* SPDX-License-Identifier: BSD-2-Clause */
/* wait_kind.h: the wait of a thread that does not run, from the kernel side's record. Pure. */
#ifndef TROCAR_CONSUMER_SAMPLING_WAIT_KIND_H
#define TROCAR_CONSUMER_SAMPLING_WAIT_KIND_H

#include <stdint.h>

#include "shared/abi/abi.h"

enum wait_kind {
#define WAIT_KIND(id, json, idle, help) WAIT_##id,
#include "shared/abi/waits.def"
#undef WAIT_KIND
	WAIT_KIND_COUNT_
};

/*
 * The state of a stack's threads, one byte: WAIT_RUNS in a sample of CPU time, WAIT_FOR_CPU, or
 * WAIT_BLOCKED plus enum wait_kind.
 */
#define WAIT_RUNS    0
#define WAIT_FOR_CPU 1
#define WAIT_BLOCKED 2

/* Returns the state of a sampled thread, from its flags (enum look_flag) and call. */
uint8_t wait_kind_state(const struct look_record *record);

/* Returns "io", "lock", ...; NULL for a state that is not blocked. */
const char *wait_kind_name(uint8_t state);

#endif
