/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * group.h: a group's number. Read from /etc/group alone and not by getgrnam(3), which loads code
 * and opens sockets: the loader's filter allows neither. A group from elsewhere is given by number.
 */
#ifndef TROCAR_LOADER_GROUP_H
#define TROCAR_LOADER_GROUP_H

#include <sys/types.h>

/* Finds `name` in `text`, the text of group(5). -ENOENT. */
int group_parse(const char *text, const char *name, gid_t *ret_gid);

/* `name` is a group's name in /etc/group or a number. -ENOENT: no such group. */
int group_find(const char *name, gid_t *ret_gid);

#endif
