/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * policy.h: applies the permissions of each process, and reads them back. The rows are in
 * capabilities.def, file_systems.def, paths.def, requests.def and syscalls.def, each with its
 * reason; each needs a test in tests/lockdown.
 */
#ifndef TROCAR_POLICY_POLICY_H
#define TROCAR_POLICY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum policy_process {
	POLICY_LOADER,
	POLICY_CONSUMER,
	POLICY_CTL,
	POLICY_BROKER,
	POLICY_RESOLVER, /* a child of the command that reads one file of symbols */
};

/* Stages of the loader and the broker, in order. A capability is dropped after its last stage. */
enum policy_stage {
	STAGE_CHECK,  /* preflight */
	STAGE_MOUNT,  /* directory and bpffs */
	STAGE_LOAD,   /* programs and maps */
	STAGE_ATTACH, /* sampling events and links */
	STAGE_PIN,    /* pins, modes, groups */
	STAGE_SERVE,  /* the broker, from its first connection on */
	STAGE_DONE,
};

/* The privileges of a process as /proc/PID/status shows them, read after the lock-down. */
struct policy_self {
	uint64_t cap_inh, cap_prm, cap_eff, cap_bnd, cap_amb;
	uint32_t seccomp;      /* 0 off, 1 strict, 2 filter */
	uint32_t no_new_privs; /* 0 or 1 */
	uint32_t uid, gid;     /* effective */
	bool dumpable;
	uint32_t landlock_abi; /* as passed to policy_self_read by the caller; 0: none */
};

/*
 * Drops every capability from every set except the permitted ones that capabilities.def grants
 * `process` at `stage` or later. Reduces the bounding set only while the process has CAP_SETPCAP.
 * Source: capabilities(7). 0 or -errno; -EPERM as in policy_capabilities_none.
 */
int policy_capabilities_keep(enum policy_process process, enum policy_stage stage);

/*
 * Empties every capability set, including bounding and ambient, for good. 0 or -errno; -EPERM: the
 * bounding set stays (no CAP_SETPCAP), the other sets are empty. Capabilities belong to threads:
 * call it before the first thread is created.
 */
int policy_capabilities_none(void);

/*
 * Drops one capability (CAP_* of linux/capability.h) from every set before its last stage ends;
 * policy_capabilities_keep does not restore it. 0 or -errno; -EPERM as in policy_capabilities_none.
 */
int policy_capabilities_drop(int capability);

/*
 * Returns the set that capabilities.def grants `process` at `stage` or later: bit n is capability
 * n.
 */
uint64_t policy_capabilities_rows(enum policy_process process, enum policy_stage stage);

/*
 * Changes to uid/gid with exactly these supplementary groups; real, effective and saved. Needs
 * CAP_SETUID and CAP_SETGID if the ids change. Empties the bounding set first, because the change
 * of user removes CAP_SETPCAP. 0 or -errno.
 */
int policy_capabilities_become(uid_t uid, gid_t gid, const gid_t *groups, size_t n_groups);

/*
 * Sets PR_SET_NO_NEW_PRIVS, PR_SET_DUMPABLE 0, PR_SET_KEEPCAPS 0 and a core size of 0. 0 or -errno.
 */
int policy_harden(void);

/* One path and its permitted uses. */
struct policy_path {
	const char *path;
	bool write;    /* file contents may be written */
	bool create;   /* below a directory: files may be made, renamed, removed */
	bool connect;  /* reserved: Unix sockets are not governed by Landlock */
	bool optional; /* skipped if it does not exist, or the user cannot reach it */
};

/*
 * Restricts the calling thread, and the threads that it creates later, to `paths`. Needs
 * no_new_privs (policy_harden). Landlock 4 and later also denies TCP; Landlock 6 and later also
 * denies signals and abstract Unix sockets of other processes. *ret_abi is the version in use; 0
 * when the kernel has no Landlock (5.13 and older, or switched off), which is no error: the caller
 * reports it. 0 or -errno; -ENOENT, -EACCES: a path that is not `optional` cannot be reached.
 * Source: landlock(7), Documentation/userspace-api/landlock.rst.
 */
int policy_landlock(const struct policy_path *paths, size_t n, uint32_t *ret_abi);

/*
 * Returns the rows of paths.def for `process`: the paths that it reads in addition to the paths in
 * its options. *ret_n rows, static.
 */
const struct policy_path *policy_landlock_paths(enum policy_process process, size_t *ret_n);

/*
 * Installs the process's system-call allow-list for all threads (SECCOMP_FILTER_FLAG_TSYNC),
 * default action kill-process, rows of syscalls.def with their argument filters. 0 or -errno.
 */
int policy_seccomp(enum policy_process process);

/* Groups of rows that are added to a process's own rows. */
enum policy_flag {
	POLICY_UNIX_OUTPUT = 1u << 0, /* consumer: may reconnect its Unix output socket */
	POLICY_USES_BROKER =
		1u << 1, /* consumer: may connect to the broker and enable its events */
	POLICY_OPENS_FILES = 1u << 2, /* ctl: may open files for reading, and fork resolvers */
};

/* Does policy_seccomp with the rows of `flags` (enum policy_flag) added. */
int policy_seccomp_flags(enum policy_process process, uint32_t flags);

/*
 * Returns whether `process` may ask the broker for `request` (enum broker_request of
 * shared/broker/broker.h), by the rows of requests.def; false for a number that is no request.
 */
bool policy_requests_allow(enum policy_process process, uint32_t request);

/*
 * Returns whether the broker may open a file on a file system of this type (`bytes` of `type`, as
 * in /proc/PID/mountinfo), by the rows of file_systems.def.
 */
bool policy_file_systems_allow(const char *type, size_t bytes);

/*
 * Reads the privileges of the calling process from the kernel (/proc/self/status and
 * PR_GET_DUMPABLE); landlock_abi stays as it is. 0 or -errno.
 */
int policy_self_read(struct policy_self *ret_self);

/* Parses `status`, the text of /proc/PID/status. -EBADMSG: a field is missing. */
int policy_self_parse(const char *status, struct policy_self *ret_self);

/*
 * Returns whether `self` has no privilege, as required of the consumer. If it has one, *ret_what is
 * its name.
 */
bool policy_self_is_bare(const struct policy_self *self, const char **ret_what);

#endif
