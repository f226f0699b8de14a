/* SPDX-License-Identifier: BSD-2-Clause */
/* unload.h: the verb `unload`: removes links, maps, mount and directory. */
#ifndef TROCAR_LOADER_UNLOAD_H
#define TROCAR_LOADER_UNLOAD_H

#include "loader/options.h"

/*
 * Removes everything of a set, also of a half-finished one, and nothing else. Logs its result.
 * Returns an enum exit_status; success also when nothing is loaded.
 */
int unload_run(const struct options *o);

#endif
