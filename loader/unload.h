/* SPDX-License-Identifier: BSD-2-Clause */
/* unload.h: the way out: links, maps, mount and directory. */
#ifndef TROCAR_LOADER_UNLOAD_H
#define TROCAR_LOADER_UNLOAD_H

#include "loader/options.h"

/*
 * The verb `unload`: removes everything of a set, also of a half-finished one, and nothing else.
 * Says on stderr what it did. Returns an enum exit_status; nothing there is success.
 */
int unload_run(const struct options *o);

#endif
