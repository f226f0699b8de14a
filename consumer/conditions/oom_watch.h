/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * oom_watch.h: writes the "oom" line about a process of a watch that the kernel kills because
 * memory ran out, and begins the sessions of the rules that ask for it. Main thread only.
 */
#ifndef TROCAR_CONSUMER_CONDITIONS_OOM_WATCH_H
#define TROCAR_CONSUMER_CONDITIONS_OOM_WATCH_H

#include "shared/abi/abi.h"

struct event_budget;
struct triggers;

/* Takes a valid event of EVENT_OOM, which is followed by its struct oom_victim. */
void oom_watch_take(struct triggers *t, struct event_budget *budget, const struct event *e);

#endif
