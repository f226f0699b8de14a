/* SPDX-License-Identifier: BSD-2-Clause */
/* program.h: finds the program that a profile is of. */
#ifndef TROCAR_CTL_VIEW_PROGRAM_H
#define TROCAR_CTL_VIEW_PROGRAM_H

#include "ctl/events/store.h"

/*
 * Finds the executable with the most time in its stacks. *ret_program has its path as `module`, and
 * its `build_id` if a frame is in it; `module` is STORE_NONE if no line has an executable. 0,
 * -ENOMEM, -ENOSPC.
 */
int program_find(struct store *s, struct store_frame *ret_program);

#endif
