/* SPDX-License-Identifier: BSD-2-Clause */
/* unwinding_lines.h: what is said of how processes are unwound. Main thread only. */
#ifndef TROCAR_CONSUMER_UNWINDING_LINES_H
#define TROCAR_CONSUMER_UNWINDING_LINES_H

#include "consumer/unwinding_plan.h"

/*
 * Writes process.unwind when how `p` is unwound has become known or is another than was said, with
 * the modules of its plan that have no rows. Only of processes that process.match was written for.
 */
void unwinding_say(struct agent *a, struct process *p);

#endif
