/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * runtime.h: finds the language runtime that a mapped file belongs to, only by its path and the
 * rows of runtimes.def.
 */
#ifndef TROCAR_CONSUMER_MAPPINGS_RUNTIME_H
#define TROCAR_CONSUMER_MAPPINGS_RUNTIME_H

#include <stdbool.h>

#include "consumer/mappings/mappings.h"

/* Returns whether `path` belongs to a runtime; `exe`: it is the process's executable. */
bool runtime_of_path(const char *path, bool exe, struct runtime *ret_runtime);

#endif
