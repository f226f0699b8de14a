/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules_apply.h: activates a rule set: fills the inactive tries, switches to them, carries over the
 * present watches, and scans for matches of the new rules. Main thread only.
 */
#ifndef TROCAR_CONSUMER_DISCOVERY_RULES_APPLY_H
#define TROCAR_CONSUMER_DISCOVERY_RULES_APPLY_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/control/control.h"
#include "shared/rules/rules.h"

struct discovery;

struct applied {
	uint32_t generation, unchanged_watches;
	size_t count;
};

/*
 * Applies `rules` (takes them over in every case) from `source`; `peer` is NULL for a file. Writes
 * rules.applied. Returns 0; -ENOSPC if the kernel's tables are too small (with an error line);
 * -errno. On failure the previous set stays active.
 */
int rules_apply_set(struct discovery *d, struct rules *rules, const char *source,
		    const struct control_peer *peer, const struct rules_faults *warnings,
		    struct applied *ret_applied);

/*
 * Parses the rules file of the options and applies it. Returns 0; -EINVAL, or -errno of reading,
 * after rules.rejected; -errno.
 */
int rules_apply_file(struct discovery *d);

/* Writes `rules_refused` of the status if the current rules file was refused. */
void rules_apply_write_refused(const struct discovery *d, struct jsonw *w);

/* Writes rules.rejected. */
void rules_apply_say_rejected(struct discovery *d, const char *source,
			      const struct control_peer *peer, const struct rules_faults *faults);

#endif
