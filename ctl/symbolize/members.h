/* SPDX-License-Identifier: BSD-2-Clause */
/* members.h: the members of a JSON object as they stand in a text, to be copied as they are. */
#ifndef TROCAR_CTL_SYMBOLIZE_MEMBERS_H
#define TROCAR_CTL_SYMBOLIZE_MEMBERS_H

#include <stddef.h>

#include "shared/json/json_reader.h"

struct jsonw;

/*
 * Copies the members of the object in `text`, which was read without a fault before, to the place
 * of `w`, all but those with a key in `without` (NULL ends it). 0 or -EBADMSG.
 */
int members_copy(const char *text, size_t bytes, const char *const *without, struct jsonw *w);

#endif
