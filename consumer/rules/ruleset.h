/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ruleset.h: the active rule set, and its copy in the kernel's tries. Sessions and lines outlive a
 * change of rules, so sets are reference-counted. There are two pairs of tries: the consumer writes
 * a new set into the pair that is not in use and switches to it by writing one word, so that rules
 * are active at all times.
 */
#ifndef TROCAR_CONSUMER_RULES_RULESET_H
#define TROCAR_CONSUMER_RULES_RULESET_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/kernel/pinned_maps.h"
#include "consumer/rules/budget.h"
#include "shared/rules/rules.h"

struct ruleset {
	unsigned int refs; /* atomic: the main thread and the symbolizer change it */
	uint32_t generation;
	char *source; /* "file:PATH" or "socket" */
	struct rules *rules;
	struct budget *budgets; /* one per rule; main thread only */
	uint32_t *ids;		/* one per rule, see ruleset_id; main thread only */
};

/* Ids that no rule has. */
#define RULE_ID_NONE	0u	   /* no rule */
#define RULE_ID_UNKNOWN UINT32_MAX /* an unknown rule */

/* The active set; every module reads it. Main thread only. */
struct active_rules {
	struct ruleset *set; /* a reference; NULL before the first is applied */
	uint32_t generation; /* the last generation that was assigned */
	uint32_t last_id;    /* the last id that was assigned to a rule */
};

/* Makes a set with one reference, which takes over `rules` on success. 0 or -ENOMEM. */
int ruleset_new(struct rules *rules, uint32_t generation, const char *source,
		struct ruleset **ret_set);
struct ruleset *ruleset_ref(struct ruleset *set);
void ruleset_unref(struct ruleset *set);

/*
 * Assigns each rule of `to` its id: that of the rule with the same name and content in `from` (may
 * be NULL), or else the next one after *last_id.
 */
void ruleset_number(struct ruleset *to, const struct ruleset *from, uint32_t *last_id);

/*
 * Returns the id of a rule of the set: an equal rule has the same id in later sets. RULE_ID_NONE
 * for NULL.
 */
uint32_t ruleset_id(const struct ruleset *set, const struct rule *rule);

/*
 * Empties pair `pair` (0 or 1) of tries, then fills it with the set's keys. Does not touch the
 * other pair. Returns 0; -ENOSPC if the loader's --rules is too small; -errno.
 */
int ruleset_fill(const struct pinned_maps *pins, unsigned int pair, const struct ruleset *set);

/* Empties a pair of tries. 0 or -errno. */
int ruleset_clear(const struct pinned_maps *pins, unsigned int pair);

#endif
