/* SPDX-License-Identifier: BSD-2-Clause */
/* session_pre_roll.h: how much of the time before its trigger a session has. Main thread only. */
#ifndef TROCAR_CONSUMER_SESSION_SESSION_PRE_ROLL_H
#define TROCAR_CONSUMER_SESSION_SESSION_PRE_ROLL_H

#include "consumer/session/session.h"

/*
 * Sets pre_ms, why it is shorter than asked for, and onset_ms of a session that begins at now_ns:
 * the recorder has had samples of all CPUs only since `ticking_ns`, and still has them only from
 * after its last eviction on, of whichever watch that was.
 */
void session_pre_roll_find(const struct sessions *all, const struct session_start *start,
			   uint64_t ticking_ns, uint64_t now_ns, struct session_result *r);

#endif
