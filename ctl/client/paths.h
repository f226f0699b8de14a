/* SPDX-License-Identifier: BSD-2-Clause */
/* paths.h: finds members of an answer by their path: "pressure.cpu.some_total_us". */
#ifndef TROCAR_CTL_CLIENT_PATHS_H
#define TROCAR_CTL_CLIENT_PATHS_H

#include <stdint.h>

#include "shared/json/json_node.h"

/* Returns the member at the path; NULL if there is none, or if it is null. */
const struct json_node *paths_get(const struct json_node *object, const char *path);

/* Returns the number at the path; 0 if there is none. */
uint64_t paths_number(const struct json_node *object, const char *path);

#endif
