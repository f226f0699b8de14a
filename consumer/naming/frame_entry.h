/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frame_entry.h: decides whether a frame is an entry point: a function without a caller, in which a
 * process, thread or goroutine begins. A name is not enough, because a program may use it for its
 * own function: the file must be the runtime that has this entry point, and _start must be at the
 * file's entry point.
 */
#ifndef TROCAR_CONSUMER_NAMING_FRAME_ENTRY_H
#define TROCAR_CONSUMER_NAMING_FRAME_ENTRY_H

#include "consumer/naming/code_files.h"
#include "consumer/naming/frame_name.h"

/*
 * Returns whether symbol `fn` is `name`, or `name` with a version ("@@GLIBC_2.34") or a compiler's
 * suffix (".abi0").
 */
bool frame_entry_is_named(const char *fn, const char *name);

/* Returns whether the named frame `f` of module `m` is an entry point. */
bool frame_entry_is(struct code_files *code, const struct module *m, const struct named_frame *f);

#endif
