/* SPDX-License-Identifier: BSD-2-Clause */
/* rule_preview.h: lists what a rule set would match now, without applying it. Main thread only. */
#ifndef TROCAR_CONSUMER_DISCOVERY_RULE_PREVIEW_H
#define TROCAR_CONSUMER_DISCOVERY_RULE_PREVIEW_H

#include <stddef.h>

#include "shared/json/jsonw.h"
#include "shared/rules/rules.h"

struct discovery;

/* What a preview left out. */
struct rule_preview_left {
	size_t omitted;	   /* matches beyond `max` */
	size_t unreadable; /* cgroups of rules by cgroup whose processes could not be read */
};

/*
 * Writes which running processes each rule of `rules` would match: an array of {rule, pid, comm,
 * cgroup}, at most `max`. The inactive tries must hold the set. Returns 0 or -errno.
 */
int rule_preview_write(struct discovery *d, const struct rules *rules, size_t max, struct jsonw *w,
		       struct rule_preview_left *ret_left);

#endif
