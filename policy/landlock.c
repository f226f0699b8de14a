/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "policy/policy.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

/*
 * Constants that the header of the oldest build host lacks. Source: include/uapi/linux/landlock.h.
 */
#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)
#endif
#ifndef LANDLOCK_ACCESS_NET_BIND_TCP
#define LANDLOCK_ACCESS_NET_BIND_TCP	(1ULL << 0)
#define LANDLOCK_ACCESS_NET_CONNECT_TCP (1ULL << 1)
#endif
#ifndef LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
#define LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0)
#define LANDLOCK_SCOPE_SIGNAL		    (1ULL << 1)
#endif

/*
 * struct landlock_ruleset_attr of Landlock version 6; an older kernel gets only the part that it
 * knows.
 */
struct ruleset {
	uint64_t fs;
	uint64_t net;
	uint64_t scoped;
};

#define FS_FIRST    (LANDLOCK_ACCESS_FS_REFER - 1) /* all rights of version 1 */
#define FS_READ	    (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define FS_WRITE    (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE)
#define FS_CREATE   (LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE)
#define FS_OF_FILES (LANDLOCK_ACCESS_FS_READ_FILE | FS_WRITE)

/* The rights that each Landlock version added. Later versions have them, too. */
static const struct step {
	uint32_t abi;
	struct ruleset adds;
} steps[] = {
	{ 1, { .fs = FS_FIRST } },
	{ 2, { .fs = LANDLOCK_ACCESS_FS_REFER } },
	{ 3, { .fs = LANDLOCK_ACCESS_FS_TRUNCATE } },
	{ 4, { .net = LANDLOCK_ACCESS_NET_BIND_TCP | LANDLOCK_ACCESS_NET_CONNECT_TCP } },
	{ 5, { .fs = LANDLOCK_ACCESS_FS_IOCTL_DEV } },
	{ 6, { .scoped = LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | LANDLOCK_SCOPE_SIGNAL } },
};

static void fill_ruleset(uint32_t abi, struct ruleset *ret_set)
{
	struct ruleset set = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(steps) && steps[i].abi <= abi; i++) {
		set.fs |= steps[i].adds.fs;
		set.net |= steps[i].adds.net;
		set.scoped |= steps[i].adds.scoped;
	}
	*ret_set = set;
}

static size_t get_ruleset_bytes(uint32_t abi)
{
	if (abi < 4)
		return offsetof(struct ruleset, net);
	if (abi < 6)
		return offsetof(struct ruleset, scoped);
	return sizeof(struct ruleset);
}

/* Whether the path cannot be used whatever Landlock allows: a file below it cannot be opened. */
static bool is_out_of_reach(int error)
{
	return error == ENOENT || error == ENOTDIR || error == EACCES;
}

/* Adds one path to the ruleset: for reading only, unless `write` or `create` is set. */
static int allow_path(int ruleset_fd, uint64_t fs, const struct policy_path *path)
{
	struct landlock_path_beneath_attr rule = { .allowed_access = FS_READ };
	_cleanup_close_ int fd = -1;
	struct stat st;

	fd = open(path->path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return path->optional && is_out_of_reach(errno) ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (path->write)
		rule.allowed_access |= FS_WRITE;
	if (path->create)
		rule.allowed_access |= FS_CREATE | FS_WRITE;
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= FS_OF_FILES; /* EINVAL for other rights on a file */
	rule.allowed_access &= fs;
	rule.parent_fd = fd;
	if (syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return -errno;
	return 0;
}

/* Returns the kernel's Landlock version; 0: the kernel lacks Landlock, or it is disabled. */
static uint32_t ask_version(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi < 0 ? 0 : (uint32_t)abi;
}

int policy_landlock(const struct policy_path *paths, size_t n, uint32_t *ret_abi)
{
	uint32_t abi = ask_version();
	_cleanup_close_ int fd = -1;
	struct ruleset set;
	int r;

	if (abi == 0) {
		*ret_abi = 0;
		return 0;
	}
	fill_ruleset(abi, &set);
	fd = (int)syscall(SYS_landlock_create_ruleset, &set, get_ruleset_bytes(abi), 0);
	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < n; i++) {
		r = allow_path(fd, set.fs, &paths[i]);
		if (r < 0)
			return r;
	}
	if (syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return -errno;
	*ret_abi = abi;
	return 0;
}

static const struct policy_path consumer_paths[] = {
#define PATH(process, path_, write_, reason) \
	{ .path = (path_), .write = (write_), .optional = true },
#include "policy/paths.def"
#undef PATH
};

const struct policy_path *policy_landlock_paths(enum policy_process process, size_t *ret_n)
{
	*ret_n = process == POLICY_CONSUMER ? ARRAY_SIZE(consumer_paths) : 0;
	return consumer_paths;
}
