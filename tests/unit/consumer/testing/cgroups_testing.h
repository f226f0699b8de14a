/* SPDX-License-Identifier: BSD-2-Clause */
/* cgroups_testing.h: a tree of directories for consumer/cgroup/cgroups.c: an id is an inode number
 * there too. */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_TESTING_CGROUPS_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_TESTING_CGROUPS_TESTING_H

#include "tests/unit/consumer/testing/unit_testing.h"

#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "consumer/cgroup/cgroups.h"

static char mount[64];
static struct cgroups cgroups;

static inline uint64_t make(const char *path)
{
	char name[256];
	struct stat st;

	snprintf(name, sizeof(name), "%s%s", mount, path);
	assert_int_equal(mkdir(name, 0755), 0);
	assert_int_equal(stat(name, &st), 0);
	return st.st_ino;
}

static inline void put_file(const char *path, const char *text)
{
	char name[256];
	FILE *f;

	snprintf(name, sizeof(name), "%s%s", mount, path);
	f = fopen(name, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static inline int setup(void **state)
{
	strcpy(mount, "/dev/shm/trocar-cgroups-XXXXXX"); /* of memory: some trees are large */
	return mkdtemp(mount) ? cgroups_open(mount, &cgroups) : -1;
}

static inline int unlink_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static inline int teardown(void **state)
{
	cgroups_done(&cgroups);
	return nftw(mount, unlink_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* The path of the cgroup once the look for it has ended; NULL when it has not found it. */
static inline const char *look_up(uint64_t id)
{
	const char *path = cgroups_path(&cgroups, id, 0);

	while (!path && cgroups_look_awaits(&cgroups, id)) {
		cgroups.look.due_ns = 0;
		cgroups_look_step(&cgroups, UINT64_MAX);
		path = cgroups_path(&cgroups, id, 0);
	}
	return path;
}

static inline void give(const char *path, uid_t uid)
{
	char name[256];

	snprintf(name, sizeof(name), "%s%s", mount, path);
	assert_int_equal(chown(name, uid, (gid_t)-1), 0);
}

#endif
