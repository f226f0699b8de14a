/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frame_pointer.h: reads a function's instructions in its file to find out whether it keeps a frame
 * pointer: whether at a place in it the register points to the saved one of the caller, next to the
 * return address. Report thread only; the files are foreign.
 */
#ifndef TROCAR_CONSUMER_NAMING_FRAME_POINTER_H
#define TROCAR_CONSUMER_NAMING_FRAME_POINTER_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/naming/code_files.h"

#define FRAME_POINTER_BYTES 4096 /* of a function that are read */

/*
 * Returns whether the function at offset `start` has set its frame pointer, and not restored its
 * caller's, when the instruction at offset `at` runs. `calls`: `at` is the return address of a
 * call; then it suffices that the function sets it before it does anything else. False also when
 * its instructions do not prove it.
 */
bool frame_pointer_is_set(const struct code_file *f, uint64_t start, uint64_t at, bool calls);

#endif
