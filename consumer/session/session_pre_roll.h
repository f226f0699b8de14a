/* SPDX-License-Identifier: BSD-2-Clause */
/* session_pre_roll.h: computes the length of a session's pre-roll. Main thread only. */
#ifndef TROCAR_CONSUMER_SESSION_SESSION_PRE_ROLL_H
#define TROCAR_CONSUMER_SESSION_SESSION_PRE_ROLL_H

#include "consumer/session/session.h"

/*
 * Sets pre_ms, the reason if it is shorter than requested, and onset_ms of a session that begins at
 * now_ns. The recorder has samples of all CPUs only since `ticking_ns`. It also lacks samples from
 * before its last eviction, which may concern any watch.
 */
void session_pre_roll_find(const struct sessions *all, const struct session_start *start,
			   uint64_t ticking_ns, uint64_t now_ns, struct session_result *r);

#endif
