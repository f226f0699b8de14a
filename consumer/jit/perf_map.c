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

/* A line of the file. Its place in the list is its age: the last line of the file comes first. */
struct entry {
	uint64_t start, size;
	uint32_t text;
};

/* The function that counts from `start` to the start of the next piece. */
struct piece {
	uint64_t start;
	uint32_t entry; /* NO_ENTRY: none */
};

#define NO_ENTRY UINT32_MAX

struct jit_map {
	struct entry *entries; /* owned */
	size_t count, space;
	struct piece *pieces; /* owned; sorted by start */
	size_t piece_count;
	char *names; /* owned */
	size_t names_bytes, names_space;
	bool cut; /* lines before those that were read are left out */
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
	free(map->pieces);
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
	struct entry entry = { .text = (uint32_t)map->names_bytes };
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

/* A number of an entry with its start, to sort by. */
struct by_start {
	uint64_t start;
	uint32_t entry;
};

static int compare_starts(const void *a, const void *b)
{
	const struct by_start *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/*
 * A sweep over the addresses. `heap` has the entries that begin at or before the current address,
 * the newest at its root. An entry that has ended stays in it until it comes to the root.
 */
struct sweep {
	struct jit_map *map;
	struct by_start *sorted; /* owned; entries by start */
	uint32_t *heap;		 /* owned */
	size_t heap_count, next;
};

static void sweep_done(struct sweep *s)
{
	free(s->sorted);
	free(s->heap);
}

static void push_heap(struct sweep *s, uint32_t entry)
{
	size_t i = s->heap_count++;

	for (; i > 0 && s->heap[(i - 1) / 2] > entry; i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = entry;
}

static void pop_heap(struct sweep *s)
{
	uint32_t entry = s->heap[--s->heap_count];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < s->heap_count) {
		child += child + 1 < s->heap_count && s->heap[child + 1] < s->heap[child];
		if (s->heap[child] >= entry)
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	s->heap[i] = entry;
}

static uint64_t end_of(const struct sweep *s, uint32_t entry)
{
	return s->map->entries[entry].start + s->map->entries[entry].size;
}

/* Adds a piece from `start` on, unless the one before is of the same entry. */
static void push_piece(struct jit_map *map, uint64_t start, uint32_t entry)
{
	if (map->piece_count > 0 && map->pieces[map->piece_count - 1].entry == entry)
		return;
	map->pieces[map->piece_count++] = (struct piece){ .start = start, .entry = entry };
}

/*
 * Writes the piece at `address` and returns where the next one begins: where the newest entry there
 * ends, or where the next entry begins. Each entry begins once and ends once, so there are at most
 * two pieces for each.
 */
static uint64_t sweep_piece(struct sweep *s, uint64_t address)
{
	uint64_t next;

	while (s->next < s->map->count && s->sorted[s->next].start == address)
		push_heap(s, s->sorted[s->next++].entry);
	while (s->heap_count > 0 && end_of(s, s->heap[0]) <= address)
		pop_heap(s);
	next = s->next < s->map->count ? s->sorted[s->next].start : UINT64_MAX;
	if (s->heap_count == 0) {
		push_piece(s->map, address, NO_ENTRY);
		return next;
	}
	push_piece(s->map, address, s->heap[0]);
	return MIN(next, end_of(s, s->heap[0]));
}

/*
 * Cuts the entries into pieces that do not overlap, each of the newest entry there. Runtimes use
 * the places of old code again and never clean the file, so any number of entries may hold one
 * address.
 */
static int cut_pieces(struct jit_map *map)
{
	_cleanup_(sweep_done) struct sweep s = { .map = map };
	struct piece *fitting;

	if (map->count == 0)
		return 0;
	s.sorted = calloc(map->count, sizeof(*s.sorted));
	s.heap = calloc(map->count, sizeof(*s.heap));
	map->pieces = calloc(2 * map->count, sizeof(*map->pieces));
	if (!s.sorted || !s.heap || !map->pieces)
		return -ENOMEM;
	for (size_t i = 0; i < map->count; i++)
		s.sorted[i] =
			(struct by_start){ .start = map->entries[i].start, .entry = (uint32_t)i };
	qsort(s.sorted, map->count, sizeof(*s.sorted), compare_starts);
	for (uint64_t at = s.sorted[0].start; s.heap_count > 0 || s.next < map->count;)
		at = sweep_piece(&s, at);
	fitting = realloc(map->pieces, map->piece_count * sizeof(*fitting));
	if (fitting)
		map->pieces = fitting;
	return 0;
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
	map->cut = bytes > 0;
	r = cut_pieces(map);
	if (r < 0)
		return r;
	*ret_map = TAKE_PTR(map);
	return 0;
}

const char *perf_map_find(const struct jit_map *map, uint64_t address, uint64_t *ret_start)
{
	const struct entry *found;
	size_t low = 0, high = map->piece_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (map->pieces[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || map->pieces[low - 1].entry == NO_ENTRY)
		return NULL;
	found = &map->entries[map->pieces[low - 1].entry];
	*ret_start = found->start;
	return map->names + found->text;
}

bool perf_map_is_cut(const struct jit_map *map)
{
	return map->cut;
}

size_t perf_map_bytes(const struct jit_map *map)
{
	return sizeof(*map) + map->space * sizeof(*map->entries) +
	       map->piece_count * sizeof(*map->pieces) + map->names_space;
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

/* Returns the first whole line of a part of a file, which begins within some line. */
static const char *skip_broken_line(const char *text, size_t bytes)
{
	const char *end = memchr(text, '\n', bytes);

	return end ? end + 1 : text + bytes;
}

enum reason perf_map_load(int fd, const struct process_key *process, struct jit_map **ret_map)
{
	_cleanup_free_ char *text = NULL;
	const char *begin;
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
	begin = offset > 0 ? skip_broken_line(text, (size_t)n) : text;
	if (perf_map_parse(begin, (size_t)(text + n - begin), ret_map) < 0)
		return REASON_NO_MEMORY;
	(*ret_map)->cut |= offset > 0;
	return REASON_NONE;
}
