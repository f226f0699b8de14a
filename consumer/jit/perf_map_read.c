/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/jit/perf_map_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/files/regular.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/io.h"
#include "shared/tools/macro.h"

#define STATUS_BYTES_MAX 16384 /* of /proc/PID/status and stat */
#define CLOCK_SLACK_S	 5
#define MARK_TAIL_BYTES	 256
#define MARK_TICK_NS	 (10 * NSEC_PER_MSEC) /* clock tick of file systems, at most */

/*
 * Returns the text after `key` in /proc/PID/status, up to the end of the line; NULL when there is
 * none.
 */
static const char *status_field(const char *status, const char *key)
{
	const char *at = strstr(status, key);

	return at && (at == status || at[-1] == '\n') ? at + strlen(key) : NULL;
}

/* Skips blanks and reads the number at *at, and moves *at past it; false when there is none. */
static bool take_decimal(const char **at, uint64_t *ret_number)
{
	char *end;

	*at += strspn(*at, " \t");
	if (**at < '0' || **at > '9')
		return false;
	*ret_number = strtoull(*at, &end, 10);
	*at = end;
	return true;
}

/* Whether the process started at that time, by the 22nd field of /proc/PID/stat, in clock ticks. */
static bool started_at(const char *folder, uint64_t start_ns)
{
	_cleanup_free_ char *stat = NULL;
	uint64_t ticks;
	char path[64];
	size_t bytes;
	const char *at;

	snprintf(path, sizeof(path), "%s/stat", folder);
	if (io_read_file(AT_FDCWD, path, STATUS_BYTES_MAX, &stat, &bytes) < 0)
		return false;
	at = strrchr(stat, ')'); /* field 2 is its name, which may contain anything */
	for (unsigned int word = 2; at && word < 22; word++)
		at = strchr(at + 1, ' ');
	if (!at || !take_decimal(&at, &ticks))
		return false;
	return ticks == start_ns / (1000000000ULL / (uint64_t)sysconf(_SC_CLK_TCK));
}

/*
 * Returns the user of a living process with the host's process id as its own. In another PID
 * namespace its file has another name, and a file with this name on the host belongs to another
 * process.
 */
static enum reason owner_of(const struct process_key *process, uid_t *ret_uid)
{
	_cleanup_free_ char *status = NULL;
	const char *uids, *pids;
	uint64_t number, effective;
	char folder[32], path[64];
	size_t bytes;

	snprintf(folder, sizeof(folder), "/proc/%u", process->tgid);
	snprintf(path, sizeof(path), "%s/status", folder);
	if (io_read_file(AT_FDCWD, path, STATUS_BYTES_MAX, &status, &bytes) < 0 ||
	    !started_at(folder, process->start_ns))
		return REASON_PROCESS_GONE;
	uids = status_field(status, "Uid:");
	pids = status_field(status, "NSpid:");
	if (!uids || !take_decimal(&uids, &number) || !take_decimal(&uids, &effective))
		return REASON_NO_PERF_MAP;
	/* The field has one number for each namespace, from the host's inwards. */
	if (pids && take_decimal(&pids, &number) && take_decimal(&pids, &number))
		return REASON_NO_PERF_MAP;
	*ret_uid = (uid_t)effective;
	return REASON_NONE;
}

/*
 * Whether the file was last written before the process started: then an earlier process with the
 * same pid left it. Both times come from clocks that may be set in between, hence the slack.
 */
static bool is_left(const struct stat *st, const struct process_key *process)
{
	int64_t age_ns = (int64_t)(clock_boot_ns() - process->start_ns);
	int64_t began_s = ((int64_t)clock_real_ns() - age_ns) / 1000000000;

	return st->st_mtime < began_s - CLOCK_SLACK_S;
}

static enum reason open_map(const char *path, uid_t owner, const struct process_key *process,
			    int *ret_fd)
{
	_cleanup_close_ int held_fd = -1;
	struct stat st;
	int fd;

	held_fd = regular_hold_local(path, &st);
	if (held_fd == -EINVAL)
		return REASON_NOT_REGULAR;
	if (held_fd < 0)
		return held_fd == -EACCES ? REASON_NO_PERMISSION : REASON_NO_PERF_MAP;
	if (st.st_uid != owner || is_left(&st, process))
		return REASON_OTHER_FILE;
	fd = regular_open(held_fd);
	if (fd < 0)
		return fd == -EACCES ? REASON_NO_PERMISSION : REASON_NO_PERF_MAP;
	*ret_fd = fd;
	return REASON_NONE;
}

/* Reads at most `space` bytes from `offset` on; returns how many. */
static ssize_t read_part(int fd, char *text, size_t space, uint64_t offset)
{
	size_t done = 0;

	while (done < space) {
		ssize_t n = pread(fd, text + done, space - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

enum reason perf_map_read_open(const char *folder, const struct process_key *process, int *ret_fd)
{
	enum reason reason;
	char path[4096];
	uid_t owner = 0;

	reason = owner_of(process, &owner);
	if (reason != REASON_NONE)
		return reason;
	if (snprintf(path, sizeof(path), "%s/perf-%u.map", folder, process->tgid) >=
	    (int)sizeof(path))
		return REASON_NO_PERF_MAP;
	return open_map(path, owner, process, ret_fd);
}

/* Returns the first whole line of a part of a file, which begins within some line. */
static const char *skip_broken_line(const char *text, size_t bytes)
{
	const char *end = memchr(text, '\n', bytes);

	return end ? end + 1 : text + bytes;
}

/* FNV-1a: the last bytes of a text, to find out whether a file still begins with it. */
static uint64_t hash_bytes(const char *text, size_t bytes)
{
	uint64_t hash = 14695981039346656037ULL;

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ (unsigned char)text[i]) * 1099511628211ULL;
	return hash;
}

/* Hashes the text before `bytes`; false when the file is shorter. */
static bool hash_tail(int fd, uint64_t bytes, uint64_t *ret_hash)
{
	char text[MARK_TAIL_BYTES];
	size_t space = (size_t)MIN(bytes, (uint64_t)sizeof(text));

	if (read_part(fd, text, space, bytes - space) != (ssize_t)space)
		return false;
	*ret_hash = hash_bytes(text, space);
	return true;
}

/* Returns when a file was last written, CLOCK_MONOTONIC, by a clock that is a tick late at most. */
static uint64_t written_ns(const struct stat *st)
{
	int64_t now = (int64_t)clock_mono_ns();
	int64_t real = (int64_t)st->st_mtim.tv_sec * (int64_t)NSEC_PER_SEC + st->st_mtim.tv_nsec;
	int64_t at = now - ((int64_t)clock_real_ns() - real) + MARK_TICK_NS;

	return at < 0 ? 0 : (uint64_t)MIN(at, now);
}

bool perf_map_read_mark(int fd, struct perf_map_mark *ret_mark)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
		return false;
	*ret_mark = (struct perf_map_mark){ .bytes = (uint64_t)st.st_size,
					    .since_ns = written_ns(&st) };
	return hash_tail(fd, ret_mark->bytes, &ret_mark->tail);
}

/* Returns how many bytes of the file existed at `began_ns`, as far as one of the marks shows. */
static uint64_t count_old(int fd, const struct perf_map_mark *marks, size_t count,
			  uint64_t began_ns)
{
	uint64_t old = 0, tail;

	for (size_t i = 0; i < count; i++)
		if (marks[i].since_ns <= began_ns && marks[i].bytes > old &&
		    hash_tail(fd, marks[i].bytes, &tail) && tail == marks[i].tail)
			old = marks[i].bytes;
	return old;
}

enum reason perf_map_read_load(int fd, const struct process_key *process,
			       const struct perf_map_age *age, struct jit_map **ret_map)
{
	_cleanup_free_ char *text = NULL;
	const char *begin;
	uint64_t bytes, offset, old;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return REASON_READ_ERROR;
	if (!S_ISREG(st.st_mode))
		return REASON_NOT_REGULAR;
	if (is_left(&st, process))
		return REASON_OTHER_FILE;
	bytes = (uint64_t)st.st_size;
	old = written_ns(&st) <= age->began_ns
		      ? bytes
		      : count_old(fd, age->marks, age->mark_count, age->began_ns);
	offset = bytes > PERF_MAP_BYTES_MAX ? bytes - PERF_MAP_BYTES_MAX : 0;
	bytes = MIN(bytes, (uint64_t)PERF_MAP_BYTES_MAX);
	text = malloc((size_t)bytes + 1);
	if (!text)
		return REASON_NO_MEMORY;
	n = read_part(fd, text, (size_t)bytes, offset);
	if (n < 0)
		return REASON_READ_ERROR;
	begin = offset > 0 ? skip_broken_line(text, (size_t)n) : text;
	old -= MIN(old, offset + (uint64_t)(begin - text));
	if (perf_map_parse(begin, (size_t)(text + n - begin), (size_t)old, ret_map) < 0)
		return REASON_NO_MEMORY;
	if (offset > 0)
		perf_map_set_cut(*ret_map);
	return REASON_NONE;
}
