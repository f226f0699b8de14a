/* SPDX-License-Identifier: BSD-2-Clause */
/* paths.h: members of an answer by their path, "pressure.cpu.some_total_us". */
#ifndef TROCAR_CTL_CLIENT_PATHS_H
#define TROCAR_CTL_CLIENT_PATHS_H

#include <stdint.h>

#include "shared/json/json_node.h"

/* Returns the last part of a path; NULL where it leads nowhere, or to null. */
const struct json_node *paths_get(const struct json_node *object, const char *path);

/* Returns the number there; 0 where there is none. */
uint64_t paths_number(const struct json_node *object, const char *path);

#endif
