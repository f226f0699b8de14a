/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broker_pressure.h: opens a pressure file by the id of its cgroup. Source: open_by_handle_at(2),
 * Documentation/accounting/psi.rst.
 */
#ifndef TROCAR_LOADER_BROKER_BROKER_PRESSURE_H
#define TROCAR_LOADER_BROKER_BROKER_PRESSURE_H

#include <stdint.h>

/*
 * Opens the directory of the cgroup `id` below the cgroup2 mount `mount_fd`; the descriptor is the
 * caller's. -ESTALE: the cgroup is gone; else -errno.
 */
int broker_pressure_cgroup(int mount_fd, uint64_t id);

/*
 * Opens the file of `resource` (enum resource) of the cgroup `id` below the cgroup2 mount
 * `mount_fd` for reading and writing; for `root_id`, the file of the whole system. The descriptor
 * is the caller's. -ESTALE: the cgroup is gone; -ENOENT: the cgroup has no such file; else -errno.
 */
int broker_pressure_open(int mount_fd, uint64_t root_id, uint64_t id, uint32_t resource);

#endif
