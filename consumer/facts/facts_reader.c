/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/facts/facts_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "consumer/facts/facts_files.h"
#include "shared/files/cgroupfs.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* memory.stat of Linux 6.18 has 2 KiB, io.stat 110 bytes for each device. */
#define TEXT_BYTES 16384

static int open_v1(struct facts_reader *r, enum facts_source source)
{
	char mount[PATH_MAX];
	int fd, e;

	if (source == FACTS_HOST) {
		r->where[source] = FACTS_HOST_WIDE;
		return 0;
	}
	e = cgroupfs_find_v1_here(facts_source_controller(source), mount, sizeof(mount));
	if (e < 0)
		return e == -ENOENT ? 0 : e;
	fd = open(mount, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r->v1[source].mount_fd = fd;
	r->where[source] = FACTS_V1;
	return 0;
}

int facts_reader_open(struct facts_reader *r, struct cgroups *cgroups)
{
	*r = (struct facts_reader){ .cgroups = cgroups };
	for (int i = 0; i < FACTS_SOURCE_COUNT_; i++) {
		r->v1[i].mount_fd = -1;
		r->where[i] = FACTS_V2;
	}
	for (int i = 0; i < FACTS_SOURCE_COUNT_; i++) {
		int e = open_v1(r, (enum facts_source)i);

		if (e < 0)
			return e;
	}
	return 0;
}

void facts_reader_done(struct facts_reader *r)
{
	if (!r->cgroups)
		return;
	for (int i = 0; i < FACTS_SOURCE_COUNT_; i++) {
		if (r->v1[i].mount_fd >= 0)
			close(r->v1[i].mount_fd);
		r->v1[i].mount_fd = -1;
	}
}

/* Opens a file of /proc, which describes the whole machine. Returns a descriptor or -errno. */
static int open_host(enum facts_file file)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%s", facts_file(file)->name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Whether the place has the file: files of the other hierarchy are not read. */
static bool is_of_place(const struct facts_place *place, enum facts_file file)
{
	const struct facts_file_row *row = facts_file(file);

	return row->where == FACTS_OWN || row->where == FACTS_HOST_WIDE ||
	       row->where == place->source[row->source].where;
}

/* Opens a file of the place. Returns a descriptor or -errno. */
static int open_row(struct facts_reader *r, const char *path, const struct facts_place *place,
		    enum facts_file file)
{
	const struct facts_file_row *row = facts_file(file);
	const struct facts_place_source *s = &place->source[row->source];

	if (row->where == FACTS_OWN)
		return cgroups_open_file(r->cgroups, path, row->name);
	if (row->where == FACTS_HOST_WIDE)
		return open_host(file);
	if (!s->path)
		return -ESRCH;
	if (row->where == FACTS_V2)
		return cgroups_open_file(r->cgroups, s->path, row->name);
	if (!strcmp(s->path, "/"))
		return -EXDEV;
	r->v1[row->source].lookups = r->cgroups->lookups;
	return cgroups_open_file(&r->v1[row->source], s->path, row->name);
}

/* Adds the values of the open file; `fd` may be the -errno of its opening. */
static void read_row(int fd, enum facts_file file, struct facts *f)
{
	char text[TEXT_BYTES];
	ssize_t n = fd < 0 ? fd : pread(fd, text, sizeof(text), 0);

	if (n >= 0)
		facts_parse(f, file, text, (size_t)n);
	if (n >= 0 && facts_file(file)->shape == FACTS_PROCESSES)
		facts_files_read(text, (size_t)n, f);
	if (n < 0)
		f->error[file] = (int16_t)(fd < 0 ? fd : -errno);
}

/* Whether it is a limit that makes processes wait: a swap limit alone does not. */
static bool is_limit(enum fact fact)
{
	return facts_row(fact)->kind == FACTS_BOUND && fact != FACT_CPU_PERIOD &&
	       fact != FACT_MEMORY_SWAP_MAX && fact != FACT_MEMORY_MEMSW_MAX;
}

/* Whether a cgroup has a limit of the source. */
static bool is_limited(struct facts_reader *r, const struct facts_place *place,
		       enum facts_source source)
{
	struct facts f = {};
	uint64_t value;

	for (int i = 0; i < FACTS_FILE_COUNT_; i++) {
		_cleanup_close_ int fd = -1;

		if (facts_file((enum facts_file)i)->source != source ||
		    facts_file((enum facts_file)i)->depth != FACTS_LIMITS ||
		    facts_file((enum facts_file)i)->where == FACTS_OWN ||
		    !is_of_place(place, (enum facts_file)i))
			continue;
		fd = open_row(r, place->source[source].path, place, (enum facts_file)i);
		read_row(fd, (enum facts_file)i, &f);
	}
	for (int i = 0; i < FACT_COUNT_; i++)
		if (is_limit((enum fact)i) && facts_get(&f, (enum fact)i, &value) &&
		    value != FACTS_NO_LIMIT)
			return true;
	return false;
}

/* Goes up to the first cgroup with a limit; stays if there is none. */
static void find_limited(struct facts_reader *r, struct facts_place *place,
			 enum facts_source source)
{
	struct facts_place_source *s = &place->source[source];
	char *own = s->path ? strdup(s->path) : NULL, *slash;

	while (own && !is_limited(r, place, source)) {
		slash = strrchr(s->path, '/');
		if (slash && slash != s->path) {
			*slash = '\0';
			continue;
		}
		free(s->path);
		s->path = own;
		return;
	}
	s->above = own && strcmp(own, s->path) != 0;
	free(own);
}

int facts_reader_place(struct facts_reader *r, const char *path, struct facts_place *ret_place)
{
	static const enum facts_source lifted[] = { FACTS_CPU, FACTS_MEMORY, FACTS_PIDS };
	int e = facts_place_find(r->cgroups, path, r->where, r->of_root, r->context, ret_place);

	for (size_t i = 0; e == 0 && i < ARRAY_SIZE(lifted); i++)
		find_limited(r, ret_place, lifted[i]);
	return e;
}

void facts_reader_files_open(struct facts_reader *r, const char *path,
			     const struct facts_place *place, enum facts_depth depth,
			     struct facts_files *ret_files)
{
	*ret_files = (struct facts_files){};
	for (int i = 0; i < FACTS_FILE_COUNT_; i++) {
		if (facts_file((enum facts_file)i)->depth > depth ||
		    !is_of_place(place, (enum facts_file)i))
			continue;
		ret_files->has |= 1ULL << i;
		ret_files->fd[i] = open_row(r, path, place, (enum facts_file)i);
	}
}

void facts_reader_files_read(const struct facts_files *files, struct facts *ret_facts)
{
	*ret_facts = (struct facts){ .time_ns = clock_mono_ns() };
	for (int i = 0; i < FACTS_FILE_COUNT_; i++)
		if (files->has & 1ULL << i)
			read_row(files->fd[i], (enum facts_file)i, ret_facts);
}

void facts_reader_files_close(struct facts_files *files)
{
	for (int i = 0; i < FACTS_FILE_COUNT_; i++)
		if (files->has & 1ULL << i && files->fd[i] >= 0)
			close(files->fd[i]);
	*files = (struct facts_files){};
}

void facts_reader_read(struct facts_reader *r, const char *path, const struct facts_place *place,
		       enum facts_depth depth, struct facts *ret_facts)
{
	struct facts_files files;

	facts_reader_files_open(r, path, place, depth, &files);
	facts_reader_files_read(&files, ret_facts);
	facts_reader_files_close(&files);
}
