/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * member_text.h: members of JSON objects as text for a person. A number has the unit that its key
 * ends in (bytes, _ms, _us); strings are tame (text.h). The caller frees each text.
 */
#ifndef TROCAR_CTL_CLI_MEMBER_TEXT_H
#define TROCAR_CTL_CLI_MEMBER_TEXT_H

#include "shared/json/json_node.h"

/* A new text of one value, shown by its key; NULL for null or no memory. */
char *member_text_value(const char *key, const struct json_node *value);

/* The key as words, without the unit that the value shows. NULL: no memory. */
char *member_text_label(const char *key);

#endif
