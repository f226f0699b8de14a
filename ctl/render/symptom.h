/* SPDX-License-Identifier: BSD-2-Clause */
/* symptom.h: prints the symptom that began a session, as a clause of a sentence. */
#ifndef TROCAR_CTL_RENDER_SYMPTOM_H
#define TROCAR_CTL_RENDER_SYMPTOM_H

#include <stdio.h>

#include "shared/json/json_node.h"

/*
 * Prints the reason of a line session.start, without a line end: "the kernel reports that its tasks
 * stalled on io (some) for ...". Prints nothing for a reason that this version does not know.
 */
void symptom_put(const struct json_node *start, FILE *out);

#endif
