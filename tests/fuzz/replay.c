/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replay.c: main of the replay tests: feeds every file that it is given, and every file in every
 * directory that it is given, to LLVMFuzzerTestOneInput once. Without libFuzzer, so that a corpus
 * is an ordinary test with any compiler. Fails when there is nothing to feed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"

#define INPUT_BYTES (64u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static int feed_file(int dir_fd, const char *path, size_t *fed)
{
	_cleanup_free_ char *data = NULL;
	_cleanup_free_ uint8_t *exact = NULL;
	size_t bytes;
	int r;

	r = io_read_file(dir_fd, path, INPUT_BYTES, &data, &bytes);
	if (r < 0)
		return r;
	/* A copy of the exact size: a read behind its end then shows under ASan. */
	exact = malloc(bytes ? bytes : 1);
	if (!exact)
		return -ENOMEM;
	memcpy(exact, data, bytes);
	LLVMFuzzerTestOneInput(exact, bytes);
	(*fed)++;
	return 0;
}

static int feed_directory(const char *path, size_t *fed)
{
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;
	int r;

	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		r = feed_file(dirfd(dir), entry->d_name, fed);
		if (r < 0)
			return r;
	}
	return 0;
}

static int feed(const char *path, size_t *fed)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? feed_directory(path, fed) : feed_file(AT_FDCWD, path, fed);
}

int main(int argc, char **argv)
{
	size_t fed = 0;

	for (int i = 1; i < argc; i++) {
		int r = feed(argv[i], &fed);

		if (r < 0) {
			fprintf(stderr, "%s: %s\n", argv[i], strerror(-r));
			return 1;
		}
	}
	printf("%zu inputs\n", fed);
	return fed > 0 ? 0 : 1;
}
