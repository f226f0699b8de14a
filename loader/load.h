/* SPDX-License-Identifier: BSD-2-Clause */
/* load.h: the opening: mount, load, attach, pin; all of it or nothing. */
#ifndef TROCAR_LOADER_LOAD_H
#define TROCAR_LOADER_LOAD_H

#include "loader/options.h"

/*
 * The verb `load`. Says on stderr what it did or what went wrong, and undoes everything on failure.
 * Signals must be blocked: a pending one is looked for between the steps and makes it fail. Drops
 * capabilities as its stages pass. Returns an enum exit_status.
 */
int load_run(const struct options *o);

#endif
