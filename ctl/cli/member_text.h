/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * member_text.h: members of JSON objects as text for a person. The end of a key is the unit of its
 * number (bytes, _ms, _us); strings are tame (text.h). The caller frees each text.
 */
#ifndef TROCAR_CTL_CLI_MEMBER_TEXT_H
#define TROCAR_CTL_CLI_MEMBER_TEXT_H

#include "shared/json/json_node.h"

/* Returns a new text of one value, in the unit of its key; NULL for null or no memory. */
char *member_text_value(const char *key, const struct json_node *value);

/* Returns the key as words, without the unit, which the value has. NULL: no memory. */
char *member_text_label(const char *key);

#endif
