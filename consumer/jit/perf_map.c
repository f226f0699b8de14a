/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/jit/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
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
#define HEX_DIGITS_MAX	 16
#define CLOCK_SLACK_S	 5

struct entry {
	uint64_t start, size;
	uint32_t age; /* 0: the last line of the file */
	uint32_t text;
};

struct jit_map {
	struct entry *entries; /* owned; sorted by start, then age */
	size_t count, space;
	char *names; /* owned */
	size_t names_bytes, names_space;
};

static void perf_map_freep(struct jit_map **map)
{
	perf_map_free(*map);
}

void perf_map_free(struct jit_map *map)
{
	if (!map)
		return;
	free(map->entries);
	free(map->names);
	free(map);
}

/* Reads a hexadecimal number and the blank after it; false when there is something else. */
static bool take_hex(const char **at, const char *end, uint64_t *ret_number)
{
	uint64_t number = 0;
	const char *i = *at;

	if (end - i > 2 && i[0] == '0' && (i[1] == 'x' || i[1] == 'X'))
		i += 2;
	for (size_t n = 0; i < end && *i != ' '; i++, n++) {
		unsigned int digit;

		if (*i >= '0' && *i <= '9')
			digit = (unsigned int)(*i - '0');
		else if ((*i | 32) >= 'a' && (*i | 32) <= 'f')
			digit = (unsigned int)((*i | 32) - 'a' + 10);
		else
			return false;
		if (n == HEX_DIGITS_MAX)
			return false;
		number = number << 4 | digit;
	}
	if (i == *at || i == end)
		return false;
	*at = i + 1;
	*ret_number = number;
	return true;
}

static int push_name(struct jit_map *map, const char *name, size_t bytes)
{
	if (map->names_bytes + bytes + 1 > map->names_space) {
		size_t space = MAX(map->names_space * 2, (size_t)65536);
		char *more = realloc(map->names, space);

		if (!more)
			return -ENOMEM;
		map->names = more;
		map->names_space = space;
	}
	memcpy(map->names + map->names_bytes, name, bytes);
	map->names[map->names_bytes + bytes] = '\0';
	map->names_bytes += bytes + 1;
	return 0;
}

static int push_entry(struct jit_map *map, struct entry entry)
{
	if (map->count == map->space) {
		size_t space = MAX(map->space * 2, (size_t)1024);
		struct entry *more = realloc(map->entries, space * sizeof(*more));

		if (!more)
			return -ENOMEM;
		map->entries = more;
		map->space = space;
	}
	map->entries[map->count++] = entry;
	return 0;
}

/* Adds the entry of one line, given without its end; skips a line that is malformed. */
static int take_line(struct jit_map *map, const char *line, size_t bytes)
{
	const char *at = line, *end = line + bytes;
	struct entry entry = { .age = (uint32_t)map->count, .text = (uint32_t)map->names_bytes };
	size_t name;
	int r;

	if (!take_hex(&at, end, &entry.start) || !take_hex(&at, end, &entry.size))
		return 0;
	name = strnlen(at, MIN((size_t)(end - at), (size_t)PERF_MAP_NAME_BYTES - 1));
	if (entry.size == 0 || entry.start > UINT64_MAX - entry.size || name == 0)
		return 0;
	r = push_name(map, at, name);
	return r < 0 ? r : push_entry(map, entry);
}

static int by_start(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->age < y->age ? -1 : x->age > y->age;
}

int perf_map_parse(const char *text, size_t bytes, struct jit_map **ret_map)
{
	_cleanup_(perf_map_freep) struct jit_map *map = calloc(1, sizeof(*map));
	int r;

	if (!map)
		return -ENOMEM;
	while (bytes > 0 && map->count < PERF_MAP_SYMBOLS_MAX) {
		const char *before = memrchr(text, '\n', bytes);
		size_t start = before ? (size_t)(before - text) + 1 : 0;

		r = take_line(map, text + start, bytes - start);
		if (r < 0)
			return r;
		bytes = before ? start - 1 : 0;
	}
	if (map->count > 1)
		qsort(map->entries, map->count, sizeof(*map->entries), by_start);
	*ret_map = TAKE_PTR(map);
	return 0;
}

const char *perf_map_find(const struct jit_map *map, uint64_t address, uint64_t *ret_start)
{
	const struct entry *best = NULL;
	size_t low = 0, high = map->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (map->entries[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t back = 1; back <= PERF_MAP_OVERLAP_MAX && back <= low; back++) {
		const struct entry *e = &map->entries[low - back];

		if (address - e->start < e->size && (!best || e->age < best->age))
			best = e;
	}
	if (!best)
		return NULL;
	*ret_start = best->start;
	return map->names + best->text;
}

size_t perf_map_bytes(const struct jit_map *map)
{
	return sizeof(*map) + map->space * sizeof(*map->entries) + map->names_space;
}

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
 * Returns the user of a living process whose own process id is the host's. In another PID namespace
 * its file has another name, and a file with this name on the host belongs to another process.
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
 * same number left it. Both times come from clocks that may be set in between, hence the slack.
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

enum reason perf_map_open(const char *folder, const struct process_key *process, int *ret_fd)
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

enum reason perf_map_load(int fd, const struct process_key *process, struct jit_map **ret_map)
{
	_cleanup_free_ char *text = NULL;
	uint64_t bytes, offset;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return REASON_READ_ERROR;
	if (!S_ISREG(st.st_mode))
		return REASON_NOT_REGULAR;
	if (is_left(&st, process))
		return REASON_OTHER_FILE;
	bytes = (uint64_t)st.st_size;
	offset = bytes > PERF_MAP_BYTES_MAX ? bytes - PERF_MAP_BYTES_MAX : 0;
	bytes = MIN(bytes, (uint64_t)PERF_MAP_BYTES_MAX);
	text = malloc((size_t)bytes + 1);
	if (!text)
		return REASON_NO_MEMORY;
	n = read_part(fd, text, (size_t)bytes, offset);
	if (n < 0)
		return REASON_READ_ERROR;
	return perf_map_parse(text, (size_t)n, ret_map) < 0 ? REASON_NO_MEMORY : REASON_NONE;
}
