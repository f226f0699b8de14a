/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/facts/facts_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* Reads one file below `path` of a hierarchy; `also` is another row of the same file. */
static void read_file(struct cgroups *hierarchy, const char *path, enum facts_file file,
		      enum facts_file also, struct facts *f)
{
	char text[TEXT_BYTES];
	int n = cgroups_read(hierarchy, path, facts_file(file)->name, text, sizeof(text));

	if (n < 0) {
		f->error[file] = f->error[also] = (int16_t)n;
		return;
	}
	facts_parse(f, file, text, (size_t)n);
	if (also != file)
		facts_parse(f, also, text, (size_t)n);
}

/* Reads a file of /proc, which tells of the whole machine. */
static void read_host(enum facts_file file, struct facts *f)
{
	char path[64], text[TEXT_BYTES];
	_cleanup_close_ int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%s", facts_file(file)->name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	if (n < 0)
		f->error[file] = (int16_t)-errno;
	else
		facts_parse(f, file, text, (size_t)n);
}

static void read_own(struct facts_reader *r, const char *path, const struct facts_place_source *s,
		     enum facts_file file, struct facts *f)
{
	bool same = s->where == FACTS_V2 && s->path && !strcmp(s->path, path);

	read_file(r->cgroups, path, file,
		  same && file == FACTS_FILE_OWN_CPU_STAT ? FACTS_FILE_V2_CPU_STAT : file, f);
}

static void read_row(struct facts_reader *r, const char *path, const struct facts_place *place,
		     enum facts_file file, struct facts *f)
{
	const struct facts_file_row *row = facts_file(file);
	const struct facts_place_source *s = &place->source[row->source];

	if (row->where == FACTS_OWN) {
		read_own(r, path, s, file, f);
	} else if (row->where == FACTS_HOST_WIDE) {
		read_host(file, f);
	} else if (row->where != s->where || f->files & 1ULL << file || f->error[file]) {
		return;
	} else if (!s->path) {
		f->error[file] = -ESRCH;
	} else if (row->where == FACTS_V2) {
		read_file(r->cgroups, s->path, file, file, f);
	} else if (!strcmp(s->path, "/")) {
		f->error[file] = -EXDEV;
	} else {
		r->v1[row->source].lookups = r->cgroups->lookups;
		read_file(&r->v1[row->source], s->path, file, file, f);
	}
}

/* Whether it is a limit that makes processes wait: one of swap alone does not. */
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

	for (int i = 0; i < FACTS_FILE_COUNT_; i++)
		if (facts_file((enum facts_file)i)->source == source &&
		    facts_file((enum facts_file)i)->depth == FACTS_LIMITS)
			read_row(r, place->source[source].path, place, (enum facts_file)i, &f);
	for (int i = 0; i < FACT_COUNT_; i++)
		if (is_limit((enum fact)i) && facts_get(&f, (enum fact)i, &value) &&
		    value != FACTS_NO_LIMIT)
			return true;
	return false;
}

/* Goes up to the first cgroup with a limit; stays where there is none. */
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

void facts_reader_read(struct facts_reader *r, const char *path, const struct facts_place *place,
		       enum facts_depth depth, struct facts *ret_facts)
{
	*ret_facts = (struct facts){ .time_ns = clock_mono_ns() };
	for (int i = 0; i < FACTS_FILE_COUNT_; i++)
		if (facts_file((enum facts_file)i)->depth <= depth)
			read_row(r, path, place, (enum facts_file)i, ret_facts);
}
