/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/client/programs.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The properties of each program. `beside` is relative to the folder of the command. */
static const struct {
	const char *variable, *installed, *beside;
} programs[] = {
	[PROGRAM_LOADER] = { "TROCAR_LOADER", CTL_LOADER, "../loader/trocar-loader" },
	[PROGRAM_CONSUMER] = { "TROCAR_CONSUMER", CTL_LIBEXEC "/trocar-consumer",
			       "../consumer/trocar-consumer" },
	[PROGRAM_ACTIVATE] = { NULL, CTL_LIBEXEC "/trocar-activate", "../loader/trocar-activate" },
};

/* Returns whether there is such a program; `path` is then its path. */
static bool find_beside(const char *beside, char path[PATH_MAX])
{
	char self[PATH_MAX], joined[2 * PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n <= 0)
		return false;
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return false;
	*slash = '\0';
	snprintf(joined, sizeof(joined), "%s/%s", self, beside);
	return access(joined, X_OK) == 0 && realpath(joined, path);
}

const char *program_path(enum program program, char path[PATH_MAX])
{
	const char *variable = programs[program].variable;
	const char *named = variable ? getenv(variable) : NULL;

	if (named && *named)
		snprintf(path, PATH_MAX, "%s", named);
	else if (access(programs[program].installed, X_OK) == 0 ||
		 !find_beside(programs[program].beside, path))
		snprintf(path, PATH_MAX, "%s", programs[program].installed);
	return path;
}
