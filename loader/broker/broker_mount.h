/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broker_mount.h: checks a mount before any call reaches its file system. An ordinary process may
 * serve a file system (FUSE), and no signal ends a wait for it. Source: proc(5) (mountinfo,
 * fdinfo), ioctl_ns(2).
 */
#ifndef TROCAR_LOADER_BROKER_BROKER_MOUNT_H
#define TROCAR_LOADER_BROKER_BROKER_MOUNT_H

#include <stdint.h>

#include "shared/broker/broker.h"

/*
 * Checks the mount of `path_fd` (O_PATH) against the mount table of the process of `process_fd`.
 * *ret_refusal is NONE if the table lists the mount, policy/file_systems.def lists its type, and
 * the mount namespace belongs to our user namespace; else FILE_SYSTEM or OTHER_NAMESPACE.
 * *ret_mount_id is the id of the mount. 0, or -errno of /proc; -ESRCH: the process has ended.
 */
int broker_mount_judge(int process_fd, int path_fd, uint64_t *ret_mount_id,
		       enum broker_refusal *ret_refusal);

#endif
