/* SPDX-License-Identifier: BSD-2-Clause */
/* user.h: a user's number, from /etc/passwd alone, for the reason that group.h gives. */
#ifndef TROCAR_LOADER_USER_H
#define TROCAR_LOADER_USER_H

#include <sys/types.h>

/* `name` is a user's name in /etc/passwd or a number. -ENOENT: no such user. */
int user_find(const char *name, uid_t *ret_uid);

#endif
