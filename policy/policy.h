/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * policy.h: what each process may do, applied and read back. The rows stand in capabilities.def,
 * file_systems.def, paths.def, requests.def and syscalls.def, each with its reason; a row without a
 * lock-down test is a bug.
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
	POLICY_RESOLVER, /* of the command: reads one file of symbols */
};

/* Stages of the loader and the broker, in order; a capability is dropped when its last stage has
 * passed. */
enum policy_stage {
	STAGE_CHECK,  /* preflight */
	STAGE_MOUNT,  /* directory and bpffs */
	STAGE_LOAD,   /* programs and maps */
	STAGE_ATTACH, /* sampling events and links */
	STAGE_PIN,    /* pins, modes, groups */
	STAGE_SERVE,  /* the broker, from its first connection on */
	STAGE_DONE,
};

/* What the kernel says of a process: /proc/self/status, read after the lock-down. */
struct policy_self {
	uint64_t cap_inh, cap_prm, cap_eff, cap_bnd, cap_amb;
	uint32_t seccomp;      /* 0 off, 1 strict, 2 filter */
	uint32_t no_new_privs; /* 0 or 1 */
	uint32_t uid, gid;     /* effective */
	bool dumpable;
	uint32_t landlock_abi; /* as passed to policy_self_read by the caller; 0: none */
};

/*
 * Keeps of the permitted set only what rows of capabilities.def grant `process` at `stage` or
 * later; drops the rest from every set, the bounding set included as long as CAP_SETPCAP is there
 * to do it. Rows that the process does not hold are passed over. Source: capabilities(7). 0 or
 * -errno.
 */
int policy_capabilities_keep(enum policy_process process, enum policy_stage stage);

/*
 * No capability in any set, bounding and ambient included, and no way back. 0 or -errno; -EPERM
 * when the bounding set could not be emptied (no CAP_SETPCAP): the other sets are empty all the
 * same. Capabilities belong to threads: call it before the first thread is made.
 */
int policy_capabilities_none(void);

/*
 * Drops one capability (CAP_* of linux/capability.h) from every set before its stage is over; keep
 * never brings it back. 0 or -errno, -EPERM as in policy_capabilities_none.
 */
int policy_capabilities_drop(int capability);

/* The rows of capabilities.def for `process` at `stage`, as a set: bit n is capability n. */
uint64_t policy_capabilities_rows(enum policy_process process, enum policy_stage stage);

/*
 * Becomes uid/gid with exactly the supplementary groups given; all of real, effective and saved.
 * Needs CAP_SETUID and CAP_SETGID when that is a change. Empties the bounding set first where
 * CAP_SETPCAP allows it, because the change of user takes that power away. 0 or -errno.
 */
int policy_become(uid_t uid, gid_t gid, const gid_t *groups, size_t n_groups);

/* PR_SET_NO_NEW_PRIVS, PR_SET_DUMPABLE 0, PR_SET_KEEPCAPS 0, core size 0. 0 or -errno. */
int policy_harden(void);

/* One path and what it may be used for. */
struct policy_path {
	const char *path;
	bool write;    /* file contents may be written */
	bool create;   /* below a directory: files may be made, renamed, removed */
	bool connect;  /* reserved: Unix sockets are not governed by Landlock */
	bool optional; /* passed over when it does not exist */
};

/*
 * Landlock: everything else is closed to this process for ever. *ret_abi is the version in use; 0
 * when the kernel has none (5.13 and older, or off), which is not an error: the caller says so.
 * Holds for the calling thread and those it makes later; needs no_new_privs (policy_harden). From
 * version 4 on TCP is closed too, from version 6 on signals and abstract Unix sockets of others. 0,
 * -errno; a path that is not `optional` and missing is -ENOENT. Source: landlock(7),
 * Documentation/userspace-api/landlock.rst.
 */
int policy_landlock(const struct policy_path *paths, size_t n, uint32_t *ret_abi);

/*
 * The rows of paths.def for `process`: what it reads besides what its options name. *ret_n rows,
 * static.
 */
const struct policy_path *policy_paths(enum policy_process process, size_t *ret_n);

/*
 * Installs the process's system-call allow-list for all threads (SECCOMP_FILTER_FLAG_TSYNC),
 * default action kill-process, rows of syscalls.def with their argument filters. 0 or -errno.
 */
int policy_seccomp(enum policy_process process);

/* Additions to a process's rows. */
enum policy_flag {
	POLICY_UNIX_OUTPUT = 1u << 0, /* consumer: may connect its Unix output socket again */
	POLICY_USES_BROKER =
		1u << 1, /* consumer: may connect to the broker and start what it opens */
	POLICY_OPENS_FILES = 1u << 2, /* ctl: may open files to read them, and start resolvers */
};

/* policy_seccomp with the rows of `flags` (enum policy_flag) added. */
int policy_seccomp_flags(enum policy_process process, uint32_t flags);

/*
 * May `process` ask the broker for `request` (enum broker_request of shared/broker.h)? Rows of
 * requests.def; false for a number that is no request.
 */
bool policy_requests_allow(enum policy_process process, uint32_t request);

/*
 * May the broker open a file that lies on a file system of this type (`bytes` of `type`, as in
 * /proc/PID/mountinfo)? Rows of file_systems.def.
 */
bool policy_file_systems_allow(const char *type, size_t bytes);

/*
 * Reads the state of the calling process back from the kernel (/proc/self/status and
 * PR_GET_DUMPABLE); landlock_abi is left as it is. 0 or -errno.
 */
int policy_self_read(struct policy_self *ret_self);

/* The part of it that stands in `status`, the text of /proc/PID/status. -EBADMSG without a field.
 */
int policy_self_parse(const char *status, struct policy_self *ret_self);

/* True when `self` is what design section 2 promises of the consumer; else *ret_what names the gap.
 */
bool policy_self_is_bare(const struct policy_self *self, const char **ret_what);

#endif
