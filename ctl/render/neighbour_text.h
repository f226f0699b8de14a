/* SPDX-License-Identifier: BSD-2-Clause */
/* neighbour_text.h: the name of the neighbour in a line `neighbour` of any signal, for a text. */
#ifndef TROCAR_CTL_RENDER_NEIGHBOUR_TEXT_H
#define TROCAR_CTL_RENDER_NEIGHBOUR_TEXT_H

#include "shared/json/json_node.h"

/*
 * Returns a new text, tame (text.h): "/batch.slice"; "/u (uid 1000, 600 cgroups)" for all cgroups
 * of a user below a directory; "(no path, unverified name) job" for a cgroup without a known path.
 * The caller frees it. NULL: no memory.
 */
char *neighbour_text(const struct json_node *line);

#endif
