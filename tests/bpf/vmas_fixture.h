/* SPDX-License-Identifier: BSD-2-Clause */
/* vmas_fixture.h: what the tests of the iterators over mappings share. */
#ifndef TROCAR_TESTS_BPF_VMAS_FIXTURE_H
#define TROCAR_TESTS_BPF_VMAS_FIXTURE_H

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness.h"
#include "shared/tools/cleanup.h"

#define MANY	      450 /* mappings that do not fit in one show */
#define MAPPINGS_SEEN 2048

struct seen {
	char path[MAPPING_PATH_BYTES];
	struct mapping_record record; /* last: its path[] is not used */
};

struct list {
	struct seen items[MAPPINGS_SEEN];
	size_t count, more;
};

/* Takes the records of one read; returns where to go on, 0 when that was all. */
static inline uint64_t take(struct list *list, const char *bytes, size_t n)
{
	uint64_t from = 0;

	for (size_t at = 0; at < n;) {
		struct seen *seen = &list->items[list->count];

		assert_true(list->count < MAPPINGS_SEEN && n - at >= sizeof(seen->record));
		memcpy(&seen->record, bytes + at, sizeof(seen->record));
		at += sizeof(seen->record);
		assert_true(seen->record.path_bytes <= MAPPING_PATH_BYTES &&
			    seen->record.path_bytes <= n - at);
		assert_int_equal(seen->record.path_bytes % 8, 0);
		memcpy(seen->path, bytes + at, seen->record.path_bytes);
		at += seen->record.path_bytes;
		if (seen->record.flags & MAPPING_MORE) {
			from = seen->record.end;
			list->more++;
		} else {
			list->count++;
		}
	}
	return from;
}

/* All executable mappings of `pid`, in as many reads as it takes. */
static inline struct list *mappings(struct harness *h, pid_t pid)
{
	struct list *list = calloc(1, sizeof(*list));
	uint64_t from = 0;

	assert_non_null(list);
	h->control->vma_tgid = (uint32_t)pid;
	do {
		_cleanup_free_ char *bytes = NULL;
		size_t n;

		h->control->vma_from = from;
		n = harness_read(h->vmas, &bytes);
		from = take(list, bytes, n);
	} while (from);
	h->control->vma_from = 0;
	return list;
}

/* Compares with /proc/PID/maps, line by line; returns how many have a file. */
static inline size_t compare(const struct list *list, pid_t pid)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64], line[4096], perms[8], file[2048];
	uint64_t start, end, offset, inode;
	unsigned int major_, minor_;
	size_t at = 0, files = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		const struct seen *seen = &list->items[at];

		file[0] = 0;
		/* NOLINTNEXTLINE(cert-err34-c): the kernel's own text */
		assert_true(sscanf(line,
				   "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64
				   " %2047[^\n]",
				   &start, &end, perms, &offset, &major_, &minor_, &inode,
				   file) >= 7);
		if (perms[2] != 'x' || !strcmp(file, "[vsyscall]"))
			continue;
		assert_true(at++ < list->count);
		assert_int_equal(seen->record.start, start);
		assert_int_equal(seen->record.end, end);
		assert_int_equal(seen->record.inode, inode);
		assert_int_equal(seen->record.device, major_ << 20 | minor_);
		assert_int_equal(!!(seen->record.flags & MAPPING_VDSO), !strcmp(file, "[vdso]"));
		assert_int_equal(!!(seen->record.flags & MAPPING_ANON),
				 !inode && strcmp(file, "[vdso]") != 0);
		if (!inode)
			continue;
		assert_int_equal(seen->record.file_offset, offset);
		if (seen->record.flags & MAPPING_PATH_CUT)
			assert_true(strlen(file) >= MAPPING_PATH_BYTES);
		else
			assert_string_equal(seen->path, file);
		files++;
	}
	assert_int_equal(at, list->count);
	return files;
}

static inline void *sleep_for_ever(void *context)
{
	for (;;)
		pause();
	return NULL;
}

/* The process lives on in two threads; the first one has ended and has no memory. */
static inline void end_first_thread(void *context)
{
	pthread_t thread;

	for (int i = 0; i < 2; i++)
		if (pthread_create(&thread, NULL, sleep_for_ever, NULL))
			return;
	syscall(SYS_exit, 0);
}

/* A remaining thread of a process after the end of its first one; 0: it has not ended yet. */
static inline pid_t thread_left(pid_t pid)
{
	char path[64], line[256];
	_cleanup_closedir_ DIR *tasks = NULL;
	_cleanup_fclose_ FILE *f = NULL;
	struct dirent *entry;
	pid_t tid = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	if (f && fgets(line, sizeof(line), f))
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	assert_non_null(tasks);
	while ((entry = readdir(tasks))) {
		pid_t other = (pid_t)strtol(entry->d_name, NULL, 10);

		if (other > 0 && other != pid)
			tid = other;
	}
	return tid;
}

/* Executable mappings that cannot merge: each begins at the file's first page; and one without a
 * file. */
static inline void map_many(int n)
{
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	for (int i = 0; i < n; i++)
		assert_ptr_not_equal(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0),
				     MAP_FAILED);
	assert_ptr_not_equal(mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			     MAP_FAILED);
}

#endif
