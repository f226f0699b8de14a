/* SPDX-License-Identifier: BSD-2-Clause */
/* signal_target.h: questions that signals ask about their session. Main thread only. */
#ifndef TROCAR_CONSUMER_SIGNALS_SIGNAL_TARGET_H
#define TROCAR_CONSUMER_SIGNALS_SIGNAL_TARGET_H

#include "consumer/signals/signals.h"

/* Whether a sample of the slot belongs to the session. */
enum belonging {
	BELONGS,
	BELONGS_NOT,
	BELONGS_PERHAPS, /* the rule that its process matched is no longer known */
};

enum belonging signal_target_judge(const struct signal_target *target,
				   const struct stack_sample *h);

/* Looks up the paths of the cgroups, below the session's cgroup, that the stacks were taken in. */
void signal_target_name_cgroups(struct stack_table *stacks, const struct signal_host *host,
				const struct signal_target *target);

#endif
