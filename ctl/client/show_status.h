/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * show_status.h: prints the state of the agent on half a terminal: whether it is healthy or the
 * fault, its watches, its last sessions, its losses.
 */
#ifndef TROCAR_CTL_CLIENT_SHOW_STATUS_H
#define TROCAR_CTL_CLIENT_SHOW_STATUS_H

#include <stdbool.h>
#include <stdio.h>

#include "shared/json/json_node.h"

/* Results of the methods with these names; NULL: no answer. */
struct status_answers {
	const struct json_node *status, *watches, *sessions;
};

/*
 * Prints at most 12 lines; with `all` also every fault, and then all parts of the status. 0 or
 * -ENOMEM.
 */
int show_status(const struct status_answers *answers, bool all, FILE *out);

#endif
