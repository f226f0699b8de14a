/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * show.h: results of the agent (docs/control.md) as text for a person. Values are shown as
 * member_text.h shows them. A result of another shape than expected is shown as far as it goes: a
 * missing value is "-". All 0 or -ENOMEM.
 */
#ifndef TROCAR_CTL_CLIENT_SHOW_H
#define TROCAR_CTL_CLIENT_SHOW_H

#include <stdio.h>

#include "shared/json/json_node.h"

/* All parts of the answer to `status`, a head for each. */
int show_all(const struct json_node *status, FILE *out);

int show_watches(const struct json_node *watches, FILE *out);
int show_sessions(const struct json_node *sessions, FILE *out);
int show_matches(const struct json_node *matches, FILE *out);

/*
 * An array of {pointer, message, line, column}: one per line "FILE:LINE:COLUMN: /pointer: message",
 * with `kind` behind the place.
 */
int show_faults(const struct json_node *faults, const char *file, const char *kind, FILE *out);

#endif
