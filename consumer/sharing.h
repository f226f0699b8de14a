/* SPDX-License-Identifier: BSD-2-Clause */
/* sharing.h: the agent's bounded things and who holds them (shares.h). Main thread only. */
#ifndef TROCAR_CONSUMER_SHARING_H
#define TROCAR_CONSUMER_SHARING_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/shares.h"

struct agent;
struct jsonw;
struct process;
struct session;
struct watch;

/* Of the status method. */
#define SHARING_TOP 5

/* The owner of a cgroup, with a reference (shares_put); NULL when it is not known. */
struct owner *sharing_owner(struct agent *a, uint64_t cgroup_id, uint32_t pid_hint);

/*
 * The watch whose slot a newcomer of `owner` may take: of those that yield to it the one of who has
 * most, rather one that lingers, rather the last that came; never one in a session or asked for.
 */
struct watch *sharing_displaced(struct agent *a, const struct owner *owner);

/* Whether a session that runs captures the process's cgroup. */
bool sharing_in_session(struct agent *a, const struct process *p);

/*
 * Why the owner may not begin a session now: a word of trigger.held, or NULL. Sessions that run,
 * and seconds of the hour.
 */
const char *sharing_held(struct agent *a, struct owner *owner, uint64_t now_ns);

/* The array `owners` of the status method. */
void sharing_write_status(struct agent *a, struct jsonw *w);

#endif
