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

/* Whether a session that runs captures the process's cgroup. */
bool sharing_in_session(struct agent *a, const struct process *p);

#endif
