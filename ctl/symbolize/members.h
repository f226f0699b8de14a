/* SPDX-License-Identifier: BSD-2-Clause */
/* members.h: copies members of a JSON object unchanged from a text. */
#ifndef TROCAR_CTL_SYMBOLIZE_MEMBERS_H
#define TROCAR_CTL_SYMBOLIZE_MEMBERS_H

#include <stddef.h>

#include "shared/json/json_reader.h"

struct jsonw;

/*
 * Copies the members of the object in `text`, which was parsed without a fault before, to the
 * current place of `w`, except members with a key in `without` (NULL ends it). 0 or -EBADMSG.
 */
int members_copy(const char *text, size_t bytes, const char *const *without, struct jsonw *w);

#endif
