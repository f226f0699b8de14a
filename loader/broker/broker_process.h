/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broker_process.h: opens the /proc directory of one process, its mapped files, and its perf map.
 * Source: proc(5), fs/proc/base.c (map_files), fs/proc/array.c (stat).
 */
#ifndef TROCAR_LOADER_BROKER_BROKER_PROCESS_H
#define TROCAR_LOADER_BROKER_BROKER_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/broker/broker.h"

/* Opens /proc/TGID; the descriptor is the caller's. -ESRCH: no such process. */
int broker_process_open(uint32_t tgid);

/*
 * Finds out whether the process of `process_fd` is alive and started at `start_ns` (boot-time
 * clock, as in struct process_key). Compares in clock ticks of 10 ms, the unit of /proc. Returns
 * NONE, OTHER_PROCESS, GONE, or KERNEL; *ret_error is -errno for the last two.
 */
enum broker_refusal broker_process_is(int process_fd, uint64_t start_ns, int *ret_error);

/*
 * Parses field 22 of the text of /proc/PID/stat, in clock ticks since boot. -EBADMSG: not such a
 * text.
 */
int broker_process_stat(const char *text, uint64_t *ret_ticks);

/*
 * Finds the path of the cgroup2 cgroup in `text`, /proc/PID/cgroup, without its leading '/'; "" for
 * the root. *ret_path points into `text`, which is changed. -ENOENT: there is none, or it is
 * outside our cgroup namespace.
 */
int broker_process_cgroup_path(char *text, const char **ret_path);

/* Looks up the id of the process's cgroup below the cgroup2 mount `cgroup_fd`. 0 or -errno. */
int broker_process_cgroup(int process_fd, int cgroup_fd, uint64_t *ret_id);

/*
 * Opens the file of the mapping [start, end) read-only if broker_mount_judge accepts its mount, it
 * is a regular file without set-user-id and set-group-id bits, and it begins with the header of an
 * ELF program or library. 0: *ret_refusal is NONE and *ret_fd the caller's, or *ret_refusal is the
 * failed check. -errno: the error of a system call; -ESRCH: there is no such mapping.
 */
int broker_process_mapping(int process_fd, uint64_t start, uint64_t end, int *ret_fd,
			   enum broker_refusal *ret_refusal);

/*
 * Reads from `text`, /proc/PID/status, the effective user id in our user namespace, and the process
 * id in the process's own (innermost) PID namespace. -EBADMSG: not such a text.
 */
int broker_process_status(const char *text, uint32_t *ret_uid, uint32_t *ret_pid);

/*
 * Opens the process's perf map read-only: /tmp/perf-PID.map below the process's root directory,
 * with the PID that the process itself sees (Linux tools/perf/Documentation/jit-interface.txt). It
 * must be a regular file without set-user-id and set-group-id bits, owned by the process's
 * effective user, with one name, on the mount of its folder. No component may be a symbolic link,
 * and broker_mount_judge must accept each mount on the way. Results as broker_process_mapping;
 * -ENOENT: no such file; -ESRCH: the process has ended.
 */
int broker_process_jit_map(int process_fd, int *ret_fd, enum broker_refusal *ret_refusal);

#endif
