/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/broker/broker_process.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/broker/broker_mount.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"
#include "shared/tools/macro.h"
#include "shared/tools/parse.h"

#define STAT_BYTES   4096
#define STATUS_BYTES (1u << 20) /* of /proc/PID/status: Groups has up to 65,536 numbers */
#define CGROUP_BYTES 16384	/* of /proc/PID/cgroup: v1 hierarchies and a path of PATH_MAX */

/* The clock tick of /proc: USER_HZ is 100 for every program, whatever HZ the kernel has. */
#define TICK_NS	    (NSEC_PER_SEC / 100)
#define START_FIELD 22
#define STATE_FIELD 3 /* the first field after the name */

int broker_process_open(uint32_t tgid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%" PRIu32, tgid);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return fd;
}

/* Reads a file of /proc/PID; -ESRCH when the process has ended. */
static int read_file(int process_fd, const char *name, char *text, size_t space)
{
	_cleanup_close_ int fd = -1;
	size_t bytes = 0;
	ssize_t n;

	text[0] = '\0';
	fd = openat(process_fd, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	do {
		n = read(fd, text + bytes, space - 1 - bytes);
		if (n < 0)
			return -errno;
		bytes += (size_t)n;
	} while (n > 0 && bytes < space - 1);
	if (n > 0)
		return -EFBIG;
	text[bytes] = '\0';
	return 0;
}

/* The process's name may contain ')' and spaces: it ends at the last ')'. */
int broker_process_stat(const char *text, uint64_t *ret_ticks)
{
	const char *at = strrchr(text, ')');
	char number[24];
	size_t bytes;

	if (!at)
		return -EBADMSG;
	at++;
	for (int field = STATE_FIELD; field < START_FIELD; field++) {
		at += strspn(at, " ");
		at += strcspn(at, " ");
	}
	at += strspn(at, " ");
	bytes = strcspn(at, " \n");
	if (bytes == 0 || bytes >= sizeof(number))
		return -EBADMSG;
	memcpy(number, at, bytes);
	number[bytes] = '\0';
	return parse_u64(number, 0, UINT64_MAX, ret_ticks) < 0 ? -EBADMSG : 0;
}

enum broker_refusal broker_process_is(int process_fd, uint64_t start_ns, int *ret_error)
{
	char text[STAT_BYTES];
	uint64_t ticks = 0;
	int r;

	r = read_file(process_fd, "stat", text, sizeof(text));
	if (r == 0)
		r = broker_process_stat(text, &ticks);
	if (r < 0) {
		*ret_error = r;
		return r == -ESRCH ? REFUSAL_GONE : REFUSAL_KERNEL;
	}
	return ticks == start_ns / TICK_NS ? REFUSAL_NONE : REFUSAL_OTHER_PROCESS;
}

int broker_process_cgroup_path(char *text, const char **ret_path)
{
	char *line = strncmp(text, "0::/", 4) == 0 ? text : strstr(text, "\n0::/");

	if (!line)
		return -ENOENT;
	line += *line == '\n';
	line += strlen("0::/");
	line[strcspn(line, "\n")] = '\0';
	/* "/../x" is outside our cgroup namespace. No cgroup has the name "..". */
	if (strncmp(line, "../", 3) == 0 || strcmp(line, "..") == 0)
		return -ENOENT;
	*ret_path = line;
	return 0;
}

int broker_process_cgroup(int process_fd, int cgroup_fd, uint64_t *ret_id)
{
	char text[CGROUP_BYTES];
	const char *path = "";
	struct stat st;
	int r;

	r = read_file(process_fd, "cgroup", text, sizeof(text));
	if (r == 0)
		r = broker_process_cgroup_path(text, &path);
	if (r < 0)
		return r;
	if (fstatat(cgroup_fd, path, &st, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	*ret_id = st.st_ino;
	return 0;
}

/*
 * An O_PATH descriptor holds one inode, so the reported file cannot be exchanged. Without
 * AT_STATX_DONT_SYNC a file system might ask its server.
 */
static int stat_path(int path_fd, struct statx *ret_st)
{
	int r = statx(path_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		      STATX_TYPE | STATX_MODE | STATX_NLINK | STATX_UID, ret_st);

	return r < 0 ? -errno : 0;
}

static int judge_file(int path_fd, enum broker_refusal *ret_refusal)
{
	struct statx st;
	int r = stat_path(path_fd, &st);

	if (r < 0)
		return r;
	if (!S_ISREG(st.stx_mode))
		*ret_refusal = REFUSAL_NOT_REGULAR;
	else if (st.stx_mode & (S_ISUID | S_ISGID))
		*ret_refusal = REFUSAL_SETUID;
	return 0;
}

/*
 * Accepts programs and libraries. Refuses core dumps, which are ELF files too, and full of secrets.
 */
static enum broker_refusal judge_content(int fd)
{
	struct {
		unsigned char ident[EI_NIDENT];
		uint16_t type;
	} head;

	if (pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
	    memcmp(head.ident, ELFMAG, SELFMAG) != 0)
		return REFUSAL_NOT_ELF;
	return head.type == ET_EXEC || head.type == ET_DYN ? REFUSAL_NONE : REFUSAL_NOT_ELF;
}

/* Opens the inode of an O_PATH descriptor by the kernel's link to it: no path is resolved. */
static int open_held(int path_fd)
{
	char link[64];
	int fd;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	fd = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int broker_process_mapping(int process_fd, uint64_t start, uint64_t end, int *ret_fd,
			   enum broker_refusal *ret_refusal)
{
	_cleanup_close_ int path_fd = -1, fd = -1;
	uint64_t mount_id;
	char name[64];
	int r;

	snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, start, end);
	path_fd = openat(process_fd, name, O_PATH | O_CLOEXEC);
	if (path_fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	r = broker_mount_judge(process_fd, path_fd, &mount_id, ret_refusal);
	if (r == 0 && *ret_refusal == REFUSAL_NONE)
		r = judge_file(path_fd, ret_refusal);
	if (r < 0 || *ret_refusal != REFUSAL_NONE)
		return r;
	fd = open_held(path_fd);
	if (fd < 0)
		return fd;
	*ret_refusal = judge_content(fd);
	if (*ret_refusal == REFUSAL_NONE)
		*ret_fd = TAKE_FD(fd);
	return 0;
}

/*
 * Reads number `index` of the line that begins with `key`; UINT_MAX: the last one. `key` begins
 * with the preceding newline: the first line holds the name of the process, which may contain any
 * other character.
 */
static int status_number(const char *text, const char *key, unsigned int index,
			 uint32_t *ret_number)
{
	const char *line = strstr(text, key);
	unsigned int found = 0;
	uint64_t number = 0;

	if (!line)
		return -EBADMSG;
	for (line += strlen(key); *line != '\n' && found <= index; found++) {
		char word[16];
		size_t bytes;

		line += strspn(line, " \t");
		bytes = strcspn(line, " \t\n");
		if (bytes == 0 || bytes >= sizeof(word))
			return -EBADMSG;
		memcpy(word, line, bytes);
		word[bytes] = '\0';
		if (parse_u64(word, 0, UINT32_MAX, &number) < 0)
			return -EBADMSG;
		line += bytes;
	}
	if (!found || (index != UINT_MAX && found <= index))
		return -EBADMSG;
	*ret_number = (uint32_t)number;
	return 0;
}

int broker_process_status(const char *text, uint32_t *ret_uid, uint32_t *ret_pid)
{
	uint32_t uid, pid;

	if (status_number(text, "\nUid:", 1, &uid) < 0 ||
	    status_number(text, "\nNSpid:", UINT_MAX, &pid) < 0)
		return -EBADMSG;
	*ret_uid = uid;
	*ret_pid = pid;
	return 0;
}

static int read_status(int process_fd, uint32_t *ret_uid, uint32_t *ret_pid)
{
	_cleanup_free_ char *text = NULL;
	size_t bytes;
	int r;

	r = io_read_file(process_fd, "status", STATUS_BYTES, &text, &bytes);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	return broker_process_status(text, ret_uid, ret_pid);
}

/*
 * Opens `name` in `dir_fd`. The mount of `dir_fd` must already be checked, because a lookup waits
 * for the file system's server. Follows no symbolic link but the kernel's own, `root`.
 */
static int open_step(int process_fd, int dir_fd, const char *name, bool root, int *ret_fd,
		     uint64_t *ret_mount_id, enum broker_refusal *ret_refusal)
{
	_cleanup_close_ int fd = -1;
	int r;

	fd = openat(dir_fd, name, O_PATH | O_CLOEXEC | (root ? 0 : O_NOFOLLOW));
	if (fd < 0)
		return root && errno == ENOENT ? -ESRCH : -errno;
	r = broker_mount_judge(process_fd, fd, ret_mount_id, ret_refusal);
	if (r == 0)
		*ret_fd = TAKE_FD(fd);
	return r;
}

/*
 * Accepts a file of the process's user with one name: a hard link may lead to any file of that
 * user.
 */
static int judge_map(int path_fd, uint32_t uid, enum broker_refusal *ret_refusal)
{
	struct statx st;
	int r = stat_path(path_fd, &st);

	if (r < 0)
		return r;
	if (!S_ISREG(st.stx_mode))
		*ret_refusal = REFUSAL_NOT_REGULAR;
	else if (st.stx_mode & (S_ISUID | S_ISGID))
		*ret_refusal = REFUSAL_SETUID;
	else if (st.stx_uid != uid || st.stx_nlink != 1)
		*ret_refusal = REFUSAL_OTHER_OWNER;
	return 0;
}

/* Opens /tmp below the process's root; stops at a refused mount. */
static int open_folder(int process_fd, int *ret_fd, uint64_t *ret_mount_id,
		       enum broker_refusal *ret_refusal)
{
	_cleanup_close_ int root_fd = -1;
	int r;

	r = open_step(process_fd, process_fd, "root", true, &root_fd, ret_mount_id, ret_refusal);
	if (r < 0 || *ret_refusal != REFUSAL_NONE)
		return r;
	return open_step(process_fd, root_fd, "tmp", false, ret_fd, ret_mount_id, ret_refusal);
}

int broker_process_jit_map(int process_fd, int *ret_fd, enum broker_refusal *ret_refusal)
{
	_cleanup_close_ int folder_fd = -1, path_fd = -1;
	uint64_t folder_mount = 0, mount = 0;
	uint32_t uid = 0, pid = 0;
	char name[32];
	int r;

	r = read_status(process_fd, &uid, &pid);
	if (r == 0)
		r = open_folder(process_fd, &folder_fd, &folder_mount, ret_refusal);
	if (r < 0 || *ret_refusal != REFUSAL_NONE)
		return r;
	snprintf(name, sizeof(name), "perf-%" PRIu32 ".map", pid);
	r = open_step(process_fd, folder_fd, name, false, &path_fd, &mount, ret_refusal);
	if (r == 0 && *ret_refusal == REFUSAL_NONE && mount != folder_mount)
		*ret_refusal = REFUSAL_OTHER_MOUNT;
	if (r == 0 && *ret_refusal == REFUSAL_NONE)
		r = judge_map(path_fd, uid, ret_refusal);
	if (r < 0 || *ret_refusal != REFUSAL_NONE)
		return r;
	r = open_held(path_fd);
	if (r < 0)
		return r;
	*ret_fd = r;
	return 0;
}
