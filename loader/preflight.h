/* SPDX-License-Identifier: BSD-2-Clause */
/* preflight.h: the verb `check`, and what `load` says of a machine that it does not fit. */
#ifndef TROCAR_LOADER_PREFLIGHT_H
#define TROCAR_LOADER_PREFLIGHT_H

#include "loader/options.h"

/* Prints the preflight of shared/preflight.h on stdout. Returns an exit status (enum load_exit). */
int preflight_run(const struct options *o);

/* After a load that the kernel refused, with its capabilities still held: logs each need that is
 * missing. */
void preflight_explain_failure(void);

/*
 * Before a load: -ENOTSUP, logged, without cgroup2, where the consumer could watch nothing. Without
 * PSI it goes on and says so: sessions can still be asked for.
 */
int preflight_surroundings(void);

#endif
