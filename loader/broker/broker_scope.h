/* SPDX-License-Identifier: BSD-2-Clause */
/* broker_scope.h: refuses objects of cgroups outside the loader's --scope. */
#ifndef TROCAR_LOADER_BROKER_BROKER_SCOPE_H
#define TROCAR_LOADER_BROKER_BROKER_SCOPE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Returns whether the path of a cgroup (below the hierarchy's root, with its leading '/') begins
 * with a prefix in the pinned map `scope_fd`. `scope_fd` -1: there is no scope, and every cgroup is
 * inside.
 */
bool broker_scope_holds(int scope_fd, const char *path);

/*
 * As broker_scope_holds, for the cgroup with that id; false if the cgroup does not exist.
 * `mount_fd` is the cgroup2 mount.
 */
bool broker_scope_holds_id(int scope_fd, int mount_fd, uint64_t root_id, uint64_t id);

#endif
