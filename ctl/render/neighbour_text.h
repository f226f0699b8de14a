/* SPDX-License-Identifier: BSD-2-Clause */
/* neighbour_text.h: how a text names the neighbour of a line `neighbour`, of any signal. */
#ifndef TROCAR_CTL_RENDER_NEIGHBOUR_TEXT_H
#define TROCAR_CTL_RENDER_NEIGHBOUR_TEXT_H

#include "shared/json/json_node.h"

/*
 * Returns a new text, tame (text.h): "/batch.slice"; "/u (uid 1000, 600 cgroups)" of all that a
 * user has below a directory; "(no path, unverified name) job" of a cgroup without a known path.
 * The caller frees it. NULL: no memory.
 */
char *neighbour_text(const struct json_node *line);

#endif
