/* SPDX-License-Identifier: BSD-2-Clause */
/* load.h: the verb `load`: mounts, loads, attaches and pins; undoes all of it on failure. */
#ifndef TROCAR_LOADER_LOAD_H
#define TROCAR_LOADER_LOAD_H

#include "loader/options.h"

/*
 * Logs the result. On failure logs the error and undoes everything. Signals must be blocked: a
 * pending one interrupts the load between two steps. Drops capabilities as its stages pass. Returns
 * an enum exit_status.
 */
int load_run(const struct options *o);

#endif
