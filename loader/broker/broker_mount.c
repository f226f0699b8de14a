/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/broker/broker_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "policy/policy.h"
#include "shared/files/mounts.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"

#define OWN_USERS "/proc/self/ns/user"

/*
 * Finds out whether the process's mount namespace belongs to our user namespace. In a mount
 * namespace of another user namespace an unprivileged user can mount, for example an overlay above
 * FUSE, of type overlay. NS_GET_USERNS fails with EPERM if the owning user namespace is not a
 * descendant of ours: that is another one, too.
 */
static int is_own_namespace(int process_fd, bool *ret_ours)
{
	_cleanup_close_ int namespace_fd = -1, owner_fd = -1;
	struct stat owner, own;

	namespace_fd = openat(process_fd, "ns/mnt", O_RDONLY | O_CLOEXEC);
	if (namespace_fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	owner_fd = ioctl(namespace_fd, NS_GET_USERNS);
	if (owner_fd < 0 && errno != EPERM)
		return -errno;
	if (owner_fd >= 0 && (fstat(owner_fd, &owner) < 0 || stat(OWN_USERS, &own) < 0))
		return -errno;
	*ret_ours = owner_fd >= 0 && owner.st_dev == own.st_dev && owner.st_ino == own.st_ino;
	return 0;
}

/*
 * The namespace is read after the table: an unprivileged process cannot move from a mount namespace
 * of another user namespace into one of ours. So if the namespace is ours now, it was ours when the
 * table was read. The mount id cannot be reused while `path_fd` is open.
 */
int broker_mount_judge(int process_fd, int path_fd, uint64_t *ret_mount_id,
		       enum broker_refusal *ret_refusal)
{
	_cleanup_free_ char *mounts = NULL;
	const char *type;
	size_t bytes = 0;
	uint64_t id = 0;
	bool ours = false;
	int r;

	r = mounts_id_of(path_fd, &id);
	if (r < 0)
		return r;
	r = io_read_file(process_fd, "mountinfo", MOUNTS_BYTES, &mounts, &bytes);
	if (r == 0)
		r = is_own_namespace(process_fd, &ours);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	type = mounts_type(mounts, id, &bytes);
	if (!ours)
		*ret_refusal = REFUSAL_OTHER_NAMESPACE;
	else if (!type || !policy_file_systems_allow(type, bytes))
		*ret_refusal = REFUSAL_FILE_SYSTEM;
	else
		*ret_refusal = REFUSAL_NONE;
	*ret_mount_id = id;
	return 0;
}
