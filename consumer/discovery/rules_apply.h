/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules_apply.h: putting a rule set into force: the tries aside, the switch, what is watched
 * already, and the scan for what the new rules match. Main thread only.
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
 * Applies `rules` (taken over in every case) from `source`; `peer` NULL for a file. Writes
 * rules.applied. On failure the running set stays in force. 0; -ENOSPC when the kernel's tables are
 * too small (said as an error line); -errno.
 */
int rules_apply_set(struct discovery *d, struct rules *rules, const char *source,
		    const struct control_peer *peer, const struct rules_faults *warnings,
		    struct applied *ret_applied);

/* Parses the file of the options and applies it. -EINVAL after rules.rejected. 0 or -errno. */
int rules_apply_file(struct discovery *d);

/* Writes rules.rejected. */
void rules_apply_say_rejected(struct discovery *d, const char *source,
			      const struct control_peer *peer, const struct rules_faults *faults);

#endif
