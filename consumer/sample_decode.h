/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sample_decode.h: a record of the samples ring, checked, with its user addresses turned into
 * module and file offset while the process is known. Everything after this works on struct
 * stack_sample.
 */
#ifndef TROCAR_CONSUMER_SAMPLE_DECODE_H
#define TROCAR_CONSUMER_SAMPLE_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/sample_record.h"
#include "consumer/stack_sample.h"
#include "shared/abi.h"

struct agent;
struct process;

/*
 * Decodes a valid record into `h` (room for STACK_SAMPLE_FRAMES_MAX frames); makes the process
 * known and reads its mappings when that is needed. Returns the process, or NULL when the table is
 * full.
 */
struct process *sample_decode(struct agent *a, const struct sample *sample, struct stack_sample *h);

#endif
