/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unit_cgroup.h: finds the cgroup that systemd made for a unit: it has the unit's name. The owner
 * of a delegated cgroup can give any name to cgroups below it, so cgroups of the system are
 * preferred.
 */
#ifndef TROCAR_CTL_CLIENT_UNIT_CGROUP_H
#define TROCAR_CTL_CLIENT_UNIT_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "ctl/cli/options.h"

/* Options in which --unit was replaced by --cgroup. */
struct unit_cgroup {
	struct options options;
	char path[PATH_MAX];
};

/*
 * The owner of a cgroup, by the owners of its folder and of all folders above it. The best one is
 * first.
 */
enum unit_owner {
	UNIT_OF_SYSTEM, /* of root, below slices only: where systemd places a system unit */
	UNIT_OF_ROOT,
	UNIT_OF_USER,
};

/* The cgroups of one name. */
struct unit_found {
	char path[PATH_MAX];  /* the first cgroup of the best owner, below the mount; "": none */
	char other[PATH_MAX]; /* another cgroup of that owner */
	enum unit_owner owner;
	uid_t uid;  /* the first owner from the top that is not root; else 0 */
	bool whole; /* all cgroups were read */
};

/* Finds the cgroups below `mount` with the last name `name`. 0 or -errno of cgroupfs_walk. */
int unit_cgroup_find(const char *mount, const char *name, struct unit_found *ret_found);

/*
 * Writes the path below the mount of the cgroup `given` by a user: such a path, with or without its
 * leading '/', or the path of its folder.
 */
void unit_cgroup_path(const char *mount, const char *given, char ret_path[PATH_MAX]);

/*
 * Copies `options`, with the cgroup in the form of unit_cgroup_path. If they have --unit and no
 * --cgroup, finds the cgroup of that name below the cgroup2 mount ("nginx" is nginx.service), sets
 * ret_unit->options.cgroup to it, which ret_unit owns, and prints it on `err`. COMMAND_FINE;
 * COMMAND_USAGE with both options; COMMAND_FAILED, printed: there is no such cgroup, or more than
 * one.
 */
int unit_cgroup_resolve(const struct options *options, struct unit_cgroup *ret_unit);

#endif
