/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/client/unit_cgroup.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "ctl/cli/command_exit.h"
#include "shared/files/cgroupfs.h"
#include "shared/tools/macro.h"

#define CGROUPS_MAX 65536 /* as many as the agent knows */
#define UNIT_BYTES  256	  /* UNIT_NAME_MAX of systemd */

struct search {
	char name[UNIT_BYTES + 16];
	char *path;	      /* the first that has it */
	char other[PATH_MAX]; /* one more */
};

/* A unit that has a cgroup ends in one of these; a name that does not is a service's. */
static bool has_suffix(const char *name)
{
	static const char *const suffixes[] = { ".service", ".scope", ".slice",
						".socket",  ".mount", ".swap" };
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && i < ARRAY_SIZE(suffixes); i++)
		if (!strcmp(dot, suffixes[i]))
			return true;
	return false;
}

static int match_name(void *context, const char *path, uint64_t id)
{
	struct search *s = context;
	char *to = s->path[0] ? s->other : s->path;

	(void)id;
	if (!s->other[0] && !strcmp(strrchr(path, '/') + 1, s->name))
		snprintf(to, PATH_MAX, "%s", path);
	return 0;
}

/* *ret_whole: all cgroups were looked at. */
static int search_all(struct search *s, bool *ret_whole)
{
	struct cgroupfs_visitor visitor = { .found = match_name, .context = s };
	struct cgroupfs_left left = { .cut = true };
	enum cgroup_mode mode;
	char mount[PATH_MAX];
	int r = cgroupfs_find_here(mount, sizeof(mount), &mode);

	if (r == 0)
		r = cgroupfs_walk(AT_FDCWD, mount, CGROUPS_MAX, visitor, &left);
	*ret_whole = !left.cut && !left.unread.count;
	return r;
}

int unit_cgroup_resolve(const struct options *options, struct unit_cgroup *ret_unit)
{
	struct search s = { .path = ret_unit->path };
	const char *unit = options->unit;
	bool whole;
	int r;

	*ret_unit = (struct unit_cgroup){ .options = *options };
	if (!unit)
		return COMMAND_FINE;
	if (options->cgroup || strchr(unit, '/') || strlen(unit) >= UNIT_BYTES) {
		fprintf(options->err, "trocar: --unit: want the name of a unit, as nginx.service, "
				      "and no --cgroup beside it\n");
		return COMMAND_USAGE;
	}
	snprintf(s.name, sizeof(s.name), "%s%s", unit, has_suffix(unit) ? "" : ".service");
	r = search_all(&s, &whole);
	ret_unit->options.cgroup = s.path;
	if (r == 0 && s.path[0] && !s.other[0])
		return COMMAND_FINE;
	if (r < 0)
		fprintf(options->err, "trocar: cannot read the cgroups: %s\n", strerror(-r));
	else if (s.other[0])
		fprintf(options->err,
			"trocar: there is more than one unit %s: want --cgroup %s or "
			"--cgroup %s\n",
			s.name, s.path, s.other);
	else
		fprintf(options->err, "trocar: no unit %s runs here%s: systemctl status %s\n",
			s.name,
			whole ? "" : ", or it is among the cgroups that cannot be looked at",
			s.name);
	return COMMAND_FAILED;
}
