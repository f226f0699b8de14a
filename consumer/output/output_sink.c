/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/output/output_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define UNIX_PREFIX   "unix:"
#define LOOK_EVERY_NS NSEC_PER_SEC
#define ROTATES_NS    (5 * NSEC_PER_SEC) /* a rotation replaces the file, then sends SIGHUP */

static int open_unix(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = -1;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/*
 * Opens a FIFO for reading and writing, so that a reader may come and go: no reader is then neither
 * an end of file nor an error; the pipe fills up, then the queue. Opens it write-only where the
 * FIFO's mode (or Landlock) forbids reading; then a missing reader is ENXIO, which is tried again
 * like any other error. Source: fifo(7).
 */
static int open_fifo(const char *path)
{
	int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);

	if (fd < 0 && errno == EACCES)
		fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

/*
 * Whether the next write would continue a line that an earlier writer could not finish: its disk
 * was full, or it was killed. A file that may not be read counts as torn.
 */
static bool is_torn(int fd)
{
	char name[32], last;
	_cleanup_close_ int reader = -1;
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
		return false;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	reader = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	return reader < 0 || pread(reader, &last, 1, st.st_size - 1) != 1 || last != '\n';
}

static int open_file(const char *path)
{
	int fd =
		open(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0640);

	return fd < 0 ? -errno : fd;
}

static int open_path(const struct output_sink *sink)
{
	if (sink->kind == OUTPUT_UNIX)
		return open_unix(sink->path);
	if (sink->kind == OUTPUT_FIFO)
		return open_fifo(sink->path);
	return open_file(sink->path);
}

/* Whether it cannot be opened a second time: proc(5) has no path for it. */
static bool is_nameless(int fd)
{
	char name[32], target[16] = "";

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return readlink(name, target, sizeof(target) - 1) > 0 &&
	       (!strncmp(target, "pipe:[", 6) || !strncmp(target, "socket:[", 8));
}

/*
 * Opens stdout without O_NONBLOCK on the inherited descriptor, which would change it for all
 * processes that share it (a shell, for example). Opens a pipe again through /proc; a socket takes
 * MSG_DONTWAIT; a file needs nothing. Anything else (a terminal) is polled, and gets so few bytes
 * at a time that the write does not block.
 */
static int open_stdout(struct output_sink *sink)
{
	struct stat st;

	if (fstat(STDOUT_FILENO, &st) < 0)
		return -errno;
	sink->fd = STDOUT_FILENO;
	sink->borrowed = true;
	sink->socket = S_ISSOCK(st.st_mode);
	sink->torn = is_torn(sink->fd);
	sink->final = is_nameless(sink->fd);
	if (S_ISREG(st.st_mode) || sink->socket)
		return 0;
	sink->poll_first = true;
	if (S_ISFIFO(st.st_mode)) {
		int fd = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_CLOEXEC);

		if (fd < 0)
			return 0;
		sink->fd = fd;
		sink->borrowed = false;
		sink->poll_first = false;
	}
	return 0;
}

int output_sink_open(const char *where, struct output_sink *ret_sink)
{
	struct output_sink sink = { .fd = -1, .kind = OUTPUT_FILE };
	struct stat st;

	if (!strcmp(where, "-")) {
		int r;

		sink.kind = OUTPUT_STDOUT;
		r = open_stdout(&sink);
		if (r == 0)
			*ret_sink = sink;
		return r;
	}
	if (!strncmp(where, UNIX_PREFIX, strlen(UNIX_PREFIX))) {
		sink.kind = OUTPUT_UNIX;
		sink.socket = true;
		where += strlen(UNIX_PREFIX);
	} else if (stat(where, &st) == 0 && S_ISFIFO(st.st_mode)) {
		sink.kind = OUTPUT_FIFO;
	}
	sink.path = strdup(where);
	if (!sink.path)
		return -ENOMEM;
	sink.fd = open_path(&sink);
	if (sink.fd < 0) {
		free(sink.path);
		return sink.fd;
	}
	sink.torn = is_torn(sink.fd);
	*ret_sink = sink;
	return 0;
}

int output_sink_reopen(struct output_sink *sink)
{
	int fd;

	if (sink->kind == OUTPUT_STDOUT)
		return 0;
	fd = open_path(sink);
	if (fd < 0)
		return fd;
	output_sink_close(sink);
	sink->fd = fd;
	sink->torn = is_torn(fd);
	sink->other_ns = 0;
	return 0;
}

bool output_sink_is_lost(struct output_sink *sink, uint64_t now_ns)
{
	struct stat held, there;

	if (sink->kind != OUTPUT_FILE || sink->fd < 0 ||
	    (sink->looked_ns && now_ns - sink->looked_ns < LOOK_EVERY_NS))
		return false;
	sink->looked_ns = now_ns;
	if (fstat(sink->fd, &held) < 0 || !S_ISREG(held.st_mode))
		return false;
	if (held.st_nlink == 0)
		return true;
	if (stat(sink->path, &there) < 0 ||
	    (there.st_dev == held.st_dev && there.st_ino == held.st_ino)) {
		sink->other_ns = 0;
		return false;
	}
	if (!sink->other_ns)
		sink->other_ns = now_ns;
	return now_ns - sink->other_ns >= ROTATES_NS;
}

void output_sink_close(struct output_sink *sink)
{
	if (sink->fd >= 0 && !sink->borrowed)
		close(sink->fd);
	sink->fd = -1;
}

void output_sink_done(struct output_sink *sink)
{
	output_sink_close(sink);
	free(sink->path);
	sink->path = NULL;
}

/*
 * POLLOUT on a pipe promises space for PIPE_BUF bytes, so a write of at most PIPE_BUF does not
 * block.
 */
static ssize_t write_polled(const struct output_sink *sink, const struct iovec *iov)
{
	struct pollfd poll_fd = { .fd = sink->fd, .events = POLLOUT };
	ssize_t n;

	if (poll(&poll_fd, 1, 0) == 0)
		return -EAGAIN;
	n = write(sink->fd, iov->iov_base, MIN(iov->iov_len, (size_t)PIPE_BUF));
	return n < 0 ? -errno : n;
}

ssize_t output_sink_write(struct output_sink *sink, const struct iovec *iov, int count)
{
	ssize_t n;

	if (sink->torn) {
		if (write(sink->fd, "\n", 1) != 1)
			return -errno;
		sink->torn = false;
	}
	if (sink->poll_first)
		return write_polled(sink, iov);
	if (sink->socket) /* no sendmsg(2): it could also send descriptors */
		n = send(sink->fd, iov->iov_base, iov->iov_len, MSG_NOSIGNAL | MSG_DONTWAIT);
	else
		n = writev(sink->fd, iov, count);
	return n < 0 ? -errno : n;
}
