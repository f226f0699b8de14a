/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * member_text.h: members of JSON objects as text for a person. The end of a key is the unit of its
 * number (bytes, _ms, _us); strings are tame (text.h).
 *
 * A form is a text with places for members:
 *   {PATH}       the value; "-" if there is none
 *   {PATH:UNIT}  the number in a unit, 0 if there is none (see `units` in the .c file)
 *   [PATH?TEXT]  TEXT, which is a form, if there is such a member
 * PATH is a key, or keys with dots between: "longest.comm". In a place, "a|b" is the first of these
 * that there is, "a|-" a dash if there is no a, not even null, and "a+b" the sum of two numbers.
 * In a condition, "!a" is true without such a member, and "a=b" if it is the word b. Else a member
 * that is null counts as missing.
 */
#ifndef TROCAR_CTL_CLI_MEMBER_TEXT_H
#define TROCAR_CTL_CLI_MEMBER_TEXT_H

#include <stdint.h>
#include <stdio.h>

#include "shared/json/json_node.h"

/*
 * Returns a new text of one value, in the unit of its key; NULL for null or no memory. The caller
 * frees it.
 */
char *member_text_value(const char *key, const struct json_node *value);

/* Returns the key as words, without the unit, which the value has. NULL: no memory. */
char *member_text_label(const char *key);

/* Returns the member at a path; NULL if there is none, or if it is null. */
const struct json_node *member_text_find(const struct json_node *object, const char *path);

/* Returns the integer at a path; 0 if there is none. */
uint64_t member_text_number(const struct json_node *object, const char *path);

/* Returns whether a condition of a form is true for the object. */
bool member_text_holds(const char *condition, const struct json_node *object);

/* Prints a form, a literal, with the members of an object. */
void member_text_put(const char *form, const struct json_node *object, FILE *out);

#endif
