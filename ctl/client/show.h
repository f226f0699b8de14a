/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * show.h: prints results of the agent (docs/control.md) as text for a person. Values have the form
 * of member_text.h. A result of an unexpected shape is printed as far as possible: a missing value
 * is "-". All functions return 0 or -ENOMEM.
 */
#ifndef TROCAR_CTL_CLIENT_SHOW_H
#define TROCAR_CTL_CLIENT_SHOW_H

#include <stdio.h>

#include "shared/json/json_node.h"

/* Prints all parts of the answer to `status`, each with a head. */
int show_all(const struct json_node *status, FILE *out);

int show_watches(const struct json_node *watches, FILE *out);
int show_sessions(const struct json_node *sessions, FILE *out);
int show_matches(const struct json_node *matches, FILE *out);

/*
 * Prints an array of {pointer, message, line, column}, one line each: "FILE:LINE:COLUMN: /pointer:
 * message", with `kind` after the place.
 */
int show_faults(const struct json_node *faults, const char *file, const char *kind, FILE *out);

#endif
