/* SPDX-License-Identifier: BSD-2-Clause */
/* load.h: the verb `load`: mounts, loads, attaches and pins, all or nothing. */
#ifndef TROCAR_LOADER_LOAD_H
#define TROCAR_LOADER_LOAD_H

#include "loader/options.h"

/*
 * Logs its result or the failure, and undoes everything on failure. Signals must be blocked: a
 * pending one interrupts the load between two steps. Drops capabilities as its stages pass. Returns
 * an enum exit_status.
 */
int load_run(const struct options *o);

#endif
