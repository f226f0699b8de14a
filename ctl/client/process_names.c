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
#include "shared/tools/similar.h"

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

/* A process may end meanwhile: then it has no name. */
static void read_name(struct process_names *names, int dir, const char *pid)
{
	_cleanup_free_ char *text = NULL;
	char path[300];
	size_t bytes;

	snprintf(path, sizeof(path), "%s/comm", pid);
	if (io_read_file(dir, path, 64, &text, &bytes) < 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	if (*text)
		add_name(names, text);
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
	while (names.count < PROCESS_NAMES_MAX && (entry = readdir(folder)))
		if (isdigit((unsigned char)entry->d_name[0]))
			read_name(&names, dirfd(folder), entry->d_name);
	*ret_names = names;
	return 0;
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
