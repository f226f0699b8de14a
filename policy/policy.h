/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * policy.h: what each process may do, applied and read back. The rows stand in capabilities.def,
 * syscalls.def and paths.def, each with its reason; a row without a lock-down test is a bug.
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
};

/* Stages of the loader, in order; a capability is dropped when its last stage has passed. */
enum policy_stage {
	STAGE_CHECK,  /* preflight */
	STAGE_MOUNT,  /* directory and bpffs */
	STAGE_LOAD,   /* programs and maps */
	STAGE_ATTACH, /* sampling events and links */
	STAGE_PIN,    /* pins, modes, groups */
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
 * Keeps of the permitted set only what rows of capabilities.def grant `process` at `stage` or later;
 * drops the rest from every set, the bounding set included. Source: capabilities(7). 0 or -errno.
 */
int policy_capabilities_keep(enum policy_process process, enum policy_stage stage);

/* No capability in any set, bounding and ambient included, and no way back. 0 or -errno. */
int policy_capabilities_none(void);

/*
 * Becomes uid/gid with exactly the supplementary groups given; all of real, effective and saved.
 * Needs CAP_SETUID and CAP_SETGID when that is a change. 0 or -errno.
 */
int policy_become(uid_t uid, gid_t gid, const gid_t *groups, size_t n_groups);

/* PR_SET_NO_NEW_PRIVS, PR_SET_DUMPABLE 0, PR_SET_KEEPCAPS 0, core size 0. 0 or -errno. */
int policy_harden(void);

/* One path and what it may be used for. */
struct policy_path {
	const char *path;
	bool write;	 /* file contents may be written */
	bool create;	 /* below a directory: files may be made, renamed, removed */
	bool connect;	 /* reserved: Unix sockets are not governed by Landlock */
	bool optional;	 /* passed over when it does not exist */
};

/*
 * Landlock: everything else is closed to this process for ever. *ret_abi is the version in use; 0 when
 * the kernel has none (5.13 and older, or off), which is not an error: the caller says so. 0, -errno.
 * Source: landlock(7), Documentation/userspace-api/landlock.rst.
 */
int policy_landlock(const struct policy_path *paths, size_t n, uint32_t *ret_abi);

/*
 * Installs the process's system-call allow-list for all threads (SECCOMP_FILTER_FLAG_TSYNC), default
 * action kill-process, rows of syscalls.def with their argument filters. 0 or -errno.
 */
int policy_seccomp(enum policy_process process);

/* Reads the state of the calling process back from the kernel. 0 or -errno. */
int policy_self_read(struct policy_self *ret_self);

/* True when `self` is what design section 2 promises of the consumer; else *ret_what names the gap. */
bool policy_self_is_bare(const struct policy_self *self, const char **ret_what);

#endif
