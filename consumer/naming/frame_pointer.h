/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frame_pointer.h: reads a function's instructions in its file to find out whether it keeps a frame
 * pointer: whether, at a certain place, the register points to the caller's saved frame pointer,
 * next to the return address. Report thread only; the files are untrusted.
 */
#ifndef TROCAR_CONSUMER_NAMING_FRAME_POINTER_H
#define TROCAR_CONSUMER_NAMING_FRAME_POINTER_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/naming/code_files.h"

#define FRAME_POINTER_BYTES 4096 /* bytes read of a function */

/*
 * Returns whether the function at offset `start` has set its frame pointer, and not yet restored
 * its caller's, when the instruction at offset `at` runs. With `calls`, `at` is the return address
 * of a call; it is then enough that the function sets the frame pointer before anything else. Also
 * returns false if the instructions do not prove it.
 */
bool frame_pointer_is_set(const struct code_file *f, uint64_t start, uint64_t at, bool calls);

#endif
