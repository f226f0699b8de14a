/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * accounts.h: finds the number of a group and of a user. It reads only /etc/group and /etc/passwd
 * and does not use getgrnam(3) and getpwnam(3), which load code and open sockets: the loader's
 * filter allows neither. A group or user from elsewhere is given by number.
 */
#ifndef TROCAR_LOADER_ACCOUNTS_H
#define TROCAR_LOADER_ACCOUNTS_H

#include <stdint.h>
#include <sys/types.h>

/*
 * Finds `name` in `text`, the text of group(5) or passwd(5): in both files the number is after the
 * second colon. -ENOENT: no line has this name.
 */
int accounts_parse(const char *text, const char *name, uint32_t *ret_number);

/* Finds a group; `name` is a name in /etc/group or a number. -ENOENT: no such group. */
int accounts_find_group(const char *name, gid_t *ret_gid);

/* Finds a user; `name` is a name in /etc/passwd or a number. -ENOENT: no such user. */
int accounts_find_user(const char *name, uid_t *ret_uid);

#endif
