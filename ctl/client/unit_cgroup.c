/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/client/unit_cgroup.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl/cli/command_exit.h"
#include "shared/files/cgroupfs.h"
#include "shared/tools/macro.h"

#define CGROUPS_MAX 65536 /* the agent's limit */
#define UNIT_BYTES  256	  /* UNIT_NAME_MAX of systemd */

struct search {
	const char *mount, *name;
	struct unit_found *found;
};

/*
 * The name of a unit with a cgroup ends in one of these suffixes; a name without one is a service.
 */
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

static bool is_slice(const char *name, size_t bytes)
{
	const size_t suffix = strlen(".slice");

	return bytes > suffix && !memcmp(name + bytes - suffix, ".slice", suffix);
}

/*
 * Finds the owner of `path`, which begins with '/'. A folder that was removed in the meantime
 * counts as a user's.
 */
static enum unit_owner find_owner(const char *mount, const char *path, uid_t *ret_uid)
{
	enum unit_owner owner = UNIT_OF_SYSTEM;
	char folder[2 * PATH_MAX];
	struct stat st;
	size_t bytes;

	*ret_uid = 0;
	for (const char *at = path; *at; at += bytes) {
		bytes = 1 + strcspn(at + 1, "/");
		snprintf(folder, sizeof(folder), "%s%.*s", mount, (int)(at + bytes - path), path);
		if (stat(folder, &st) < 0)
			st.st_uid = (uid_t)-1;
		if (st.st_uid != 0) {
			*ret_uid = st.st_uid;
			return UNIT_OF_USER;
		}
		if (at[bytes] && !is_slice(at + 1, bytes - 1))
			owner = UNIT_OF_ROOT;
	}
	return owner;
}

static int match_name(void *context, const char *path, uint64_t id)
{
	struct search *s = context;
	struct unit_found *f = s->found;
	enum unit_owner owner;
	uid_t uid;

	(void)id;
	if (strcmp(strrchr(path, '/') + 1, s->name) != 0)
		return 0;
	owner = find_owner(s->mount, path, &uid);
	if (f->path[0] && owner > f->owner)
		return 0;
	if (f->path[0] && owner == f->owner) {
		snprintf(f->other, sizeof(f->other), "%s", path);
		return 0;
	}
	snprintf(f->path, sizeof(f->path), "%s", path);
	f->other[0] = '\0';
	f->owner = owner;
	f->uid = uid;
	return 0;
}

int unit_cgroup_find(const char *mount, const char *name, struct unit_found *ret_found)
{
	struct search s = { .mount = mount, .name = name, .found = ret_found };
	struct cgroupfs_visitor visitor = { .found = match_name, .context = &s };
	struct cgroupfs_left left = { .cut = true };
	int r;

	*ret_found = (struct unit_found){ .path = "" };
	r = cgroupfs_walk(AT_FDCWD, mount, CGROUPS_MAX, visitor, &left);
	ret_found->whole = !left.cut && !left.unread.count;
	return r;
}

static int search_all(const char *name, struct unit_found *ret_found)
{
	enum cgroup_mode mode;
	char mount[PATH_MAX];
	int r = cgroupfs_find_here(mount, sizeof(mount), &mode);

	return r < 0 ? r : unit_cgroup_find(mount, name, ret_found);
}

void unit_cgroup_path(const char *mount, const char *given, char ret_path[PATH_MAX])
{
	size_t bytes = strlen(mount);

	if (!strncmp(given, mount, bytes) && (given[bytes] == '/' || !given[bytes]))
		given += bytes;
	while (*given == '/')
		given++;
	bytes = strlen(given);
	while (bytes && given[bytes - 1] == '/')
		bytes--;
	snprintf(ret_path, PATH_MAX, "/%.*s", (int)bytes, given);
}

/* If no cgroups are visible here, the agent may still see them. */
static void resolve_path(struct unit_cgroup *unit)
{
	const char *given = unit->options.cgroup;
	enum cgroup_mode mode;
	char mount[PATH_MAX];

	if (cgroupfs_find_here(mount, sizeof(mount), &mode) < 0)
		return;
	unit_cgroup_path(mount, given, unit->path);
	if (!strcmp(given, unit->path))
		return;
	fprintf(unit->options.err, "trocar: --cgroup %s is the cgroup %s\n", given, unit->path);
	unit->options.cgroup = unit->path;
}

static int judge_found(const struct options *options, const char *name,
		       const struct unit_found *found)
{
	if (found->other[0]) {
		fprintf(options->err,
			"trocar: there is more than one unit %s: want --cgroup %s or --cgroup %s\n",
			name, found->path, found->other);
		return COMMAND_FAILED;
	}
	if (!found->path[0]) {
		fprintf(options->err, "trocar: no unit %s runs here%s: systemctl status %s\n", name,
			found->whole ? "" : ", or its cgroup cannot be read", name);
		return COMMAND_FAILED;
	}
	fprintf(options->err, "trocar: unit %s is the cgroup %s", name, found->path);
	if (found->owner == UNIT_OF_USER)
		fprintf(options->err, ", of user %u", found->uid);
	fputc('\n', options->err);
	return COMMAND_FINE;
}

int unit_cgroup_resolve(const struct options *options, struct unit_cgroup *ret_unit)
{
	char name[UNIT_BYTES + 16];
	struct unit_found found;
	const char *unit = options->unit;
	int r;

	*ret_unit = (struct unit_cgroup){ .options = *options };
	if (!unit && options->cgroup)
		resolve_path(ret_unit);
	if (!unit)
		return COMMAND_FINE;
	if (options->cgroup || strchr(unit, '/') || strlen(unit) >= UNIT_BYTES) {
		fprintf(options->err,
			"trocar: --unit: want the name of a unit, as nginx.service, and no "
			"--cgroup next to it\n");
		return COMMAND_USAGE;
	}
	snprintf(name, sizeof(name), "%s%s", unit, has_suffix(unit) ? "" : ".service");
	r = search_all(name, &found);
	if (r < 0) {
		fprintf(options->err, "trocar: cannot read the cgroups: %s\n", strerror(-r));
		return COMMAND_FAILED;
	}
	memcpy(ret_unit->path, found.path, sizeof(found.path));
	ret_unit->options.cgroup = ret_unit->path;
	return judge_found(options, name, &found);
}
