/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rule_preview.h: lists the present matches of a rule set, without applying it, in parts. It fills
 * the idle tries with the set. One preview uses them at a time, and the others wait. If rules are
 * applied in the meantime, which uses the idle tries too, the preview begins anew. Main thread
 * only.
 */
#ifndef TROCAR_CONSUMER_DISCOVERY_RULE_PREVIEW_H
#define TROCAR_CONSUMER_DISCOVERY_RULE_PREVIEW_H

#include <stddef.h>
#include <stdint.h>

#include "shared/rules/rules.h"

struct discovery;
struct jsonw;
struct rule_preview;

/* The matches that a preview omitted. */
struct rule_preview_left {
	size_t omitted;	   /* matches beyond `max` */
	size_t unreadable; /* cgroups of rules by cgroup with unreadable processes */
};

/*
 * Begins a preview of `rules`, which it takes over, with at most `max` matches. rule_preview_free
 * releases it, also before its end. Returns 0 or -ENOMEM.
 */
int rule_preview_new(struct discovery *d, struct rules *rules, size_t max,
		     struct rule_preview **ret_preview);
void rule_preview_free(struct rule_preview *v);

/*
 * Continues until `until_ns` (clock_mono_ns). Returns 1 if there is more, 0 at the end, or -errno.
 */
int rule_preview_step(struct rule_preview *v, uint64_t until_ns);

/*
 * Writes the running processes that each rule would match: the member `matches`, an array of {rule,
 * pid, comm, cgroup}. Sets *ret_left to the number of omitted ones.
 */
void rule_preview_write(const struct rule_preview *v, struct jsonw *w,
			struct rule_preview_left *ret_left);

#endif
