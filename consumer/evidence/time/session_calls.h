/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_calls.h: writes the system calls that the session's threads waited in, and ran in. Report
 * thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_TIME_SESSION_CALLS_H
#define TROCAR_CONSUMER_EVIDENCE_TIME_SESSION_CALLS_H

#include "consumer/evidence/cpu/session_cpu.h"
#include "consumer/output/event_line.h"
#include "consumer/session/session_result.h"

/*
 * Writes a line `syscall` for each of the 20 with the most time, and one for all the others;
 * nothing where the session has no `syscall`. `cpu` has the CPU time of its threads.
 */
void session_calls_put(const struct session_result *s, const struct session_cpu *cpu,
		       const struct event_lines *lines, const struct event_subject *subject);

/*
 * Writes `call` of a stack of the signal `oncpu`, where that was in a system call with a name, and
 * `memory_stall`, where it was in one.
 */
void session_calls_write(const struct stack *stack, struct jsonw *w);

#endif
