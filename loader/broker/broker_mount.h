/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broker_mount.h: may a file be asked for anything at all? Who answers for a file system may be a
 * process like any other; a wait for it is ended by no signal. So its mount is judged first, and
 * without a question to it. Source: proc(5) (mountinfo, fdinfo), ioctl_ns(2).
 */
#ifndef TROCAR_LOADER_BROKER_MOUNT_H
#define TROCAR_LOADER_BROKER_MOUNT_H

#include <stdint.h>

#include "shared/broker.h"

/*
 * Judges the mount that `path_fd` (O_PATH) lies on, by the mount table of the process behind
 * `process_fd`. NONE: it is listed there, its file system stands in policy/file_systems.def, and
 * the mount namespace belongs to the user namespace of this process; FILE_SYSTEM or
 * OTHER_NAMESPACE. *ret_mount_id is that of the mount. 0, or -errno of /proc; -ESRCH: the process
 * has ended.
 */
int broker_mount_judge(int process_fd, int path_fd, uint64_t *ret_mount_id,
		       enum broker_refusal *ret_refusal);

#endif
