/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unit_cgroup.h: the cgroup that systemd gave to a unit: the one of the unit's name. The owner of a
 * delegated cgroup can give its cgroups any name, so those of the system come first.
 */
#ifndef TROCAR_CTL_CLIENT_UNIT_CGROUP_H
#define TROCAR_CTL_CLIENT_UNIT_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "ctl/cli/options.h"

/* Options of which --unit has become --cgroup. */
struct unit_cgroup {
	struct options options;
	char path[PATH_MAX];
};

/* The owner of a cgroup, by the owners of its folder and of all above it. The best comes first. */
enum unit_owner {
	UNIT_OF_SYSTEM, /* root's, and all above it are slices: as systemd places a system unit */
	UNIT_OF_ROOT,
	UNIT_OF_USER,
};

/* The cgroups of one name. */
struct unit_found {
	char path[PATH_MAX];  /* the first of the best owner, below the mount; "": there is none */
	char other[PATH_MAX]; /* one more of that owner */
	enum unit_owner owner;
	uid_t uid;  /* the first owner from the top that is not root; else 0 */
	bool whole; /* all cgroups were looked at */
};

/* Finds the cgroups below `mount` with the last name `name`. 0 or -errno of cgroupfs_walk. */
int unit_cgroup_find(const char *mount, const char *name, struct unit_found *ret_found);

/*
 * Writes the path below the mount of the cgroup that a user names: by such a path, with or without
 * its '/', or by the path of its folder.
 */
void unit_cgroup_path(const char *mount, const char *given, char ret_path[PATH_MAX]);

/*
 * Copies `options`, with the cgroup as unit_cgroup_path writes it; where they have --unit and no
 * --cgroup, finds the cgroup of that name below the cgroup2 mount ("nginx" is nginx.service) for
 * ret_unit->options.cgroup, which ret_unit owns, and prints on `err` which one it is. COMMAND_FINE;
 * COMMAND_USAGE with both; COMMAND_FAILED where there is none or more than one: it was printed.
 */
int unit_cgroup_resolve(const struct options *options, struct unit_cgroup *ret_unit);

#endif
