/* SPDX-License-Identifier: BSD-2-Clause */
/* broker_scope.h: nothing of a cgroup outside of the loader's --scope is opened for anybody. */
#ifndef TROCAR_LOADER_BROKER_SCOPE_H
#define TROCAR_LOADER_BROKER_SCOPE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Whether the cgroup at `path`, below the hierarchy's root and with its '/', begins with one of the
 * prefixes in the pinned map `scope_fd`; -1: there is no scope, and everything does.
 */
bool broker_scope_holds(int scope_fd, const char *path);

/* The same of the cgroup with that id; false when it is not there. `mount_fd` is cgroup2's. */
bool broker_scope_holds_id(int scope_fd, int mount_fd, uint64_t root_id, uint64_t id);

#endif
