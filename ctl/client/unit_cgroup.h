/* SPDX-License-Identifier: BSD-2-Clause */
/* unit_cgroup.h: the cgroup that systemd gave to a unit: the one of the unit's name. */
#ifndef TROCAR_CTL_CLIENT_UNIT_CGROUP_H
#define TROCAR_CTL_CLIENT_UNIT_CGROUP_H

#include <limits.h>

#include "ctl/cli/options.h"

/* Options of which --unit has become --cgroup. */
struct unit_cgroup {
	struct options options;
	char path[PATH_MAX];
};

/*
 * Copies `options`; where they have --unit and no --cgroup, finds the one cgroup of that name below
 * the cgroup2 mount ("nginx" is nginx.service) for ret_unit->options.cgroup, which ret_unit owns.
 * COMMAND_FINE; COMMAND_USAGE with both; COMMAND_FAILED where there is none or more than one: it
 * was said.
 */
int unit_cgroup_resolve(const struct options *options, struct unit_cgroup *ret_unit);

#endif
