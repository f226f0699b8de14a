/* SPDX-License-Identifier: BSD-2-Clause */
/* preflight.h: the verb `check`. */
#ifndef TROCAR_LOADER_PREFLIGHT_H
#define TROCAR_LOADER_PREFLIGHT_H

#include "loader/options.h"

/* Prints the preflight of shared/preflight.h on stdout. Returns an exit status (enum load_exit). */
int preflight_run(const struct options *o);

#endif
