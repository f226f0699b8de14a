/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/client/process_names.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"
#include "shared/tools/macro.h"
#include "shared/tools/similar.h"

#define COMM_BYTES 16 /* TASK_COMM_LEN of the kernel */

static void close_folder(DIR **folder)
{
	if (*folder)
		closedir(*folder);
}

static void add_name(struct process_names *names, const char *name)
{
	for (size_t i = 0; i < names->count; i++)
		if (strcmp(names->items[i], name) == 0)
			return;
	snprintf(names->items[names->count++], sizeof(*names->items), "%s", name);
}

/* The caller frees it. NULL: the process has ended in the meantime. */
static char *read_name(int dir, const char *pid)
{
	char path[300], *text;
	size_t bytes;

	snprintf(path, sizeof(path), "%s/comm", pid);
	if (io_read_file(dir, path, 64, &text, &bytes) < 0)
		return NULL;
	text[strcspn(text, "\n")] = '\0';
	return text;
}

static bool is_process(const struct dirent *entry)
{
	return isdigit((unsigned char)entry->d_name[0]);
}

int process_names_read(struct process_names *ret_names)
{
	_cleanup_(close_folder) DIR *folder = opendir("/proc");
	struct process_names names = { 0 };
	const struct dirent *entry;

	if (!folder)
		return -errno;
	names.items = calloc(PROCESS_NAMES_MAX, sizeof(*names.items));
	if (!names.items)
		return -ENOMEM;
	while (names.count < PROCESS_NAMES_MAX && (entry = readdir(folder))) {
		_cleanup_free_ char *name =
			is_process(entry) ? read_name(dirfd(folder), entry->d_name) : NULL;

		if (name && *name)
			add_name(&names, name);
	}
	*ret_names = names;
	return 0;
}

uint64_t process_names_number(const char *name, unsigned int *ret_count)
{
	_cleanup_(close_folder) DIR *folder = opendir("/proc");
	const struct dirent *entry;
	uint64_t lowest = 0, number;

	*ret_count = 0;
	while (folder && (entry = readdir(folder))) {
		_cleanup_free_ char *comm =
			is_process(entry) ? read_name(dirfd(folder), entry->d_name) : NULL;

		if (!comm || strncmp(comm, name, COMM_BYTES - 1) != 0)
			continue;
		number = strtoull(entry->d_name, NULL, 10);
		lowest = lowest ? MIN(lowest, number) : number;
		(*ret_count)++;
	}
	return lowest;
}

void process_names_done(struct process_names *names)
{
	free(names->items);
	*names = (struct process_names){ 0 };
}

bool process_names_has(const struct process_names *names, const char *comm, bool prefix)
{
	size_t bytes = strlen(comm) + !prefix;

	for (size_t i = 0; i < names->count; i++)
		if (strncmp(names->items[i], comm, bytes) == 0)
			return true;
	return false;
}

const char *process_names_near(const struct process_names *names, const char *comm)
{
	const char *near = NULL;
	size_t distance = 0;

	for (size_t i = 0; i < names->count; i++)
		similar_offer(comm, names->items[i], &near, &distance);
	return near;
}
