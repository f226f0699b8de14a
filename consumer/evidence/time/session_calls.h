/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_calls.h: writes the system calls in which the session's threads waited and ran. Report
 * thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_TIME_SESSION_CALLS_H
#define TROCAR_CONSUMER_EVIDENCE_TIME_SESSION_CALLS_H

#include "consumer/evidence/cpu/session_cpu.h"
#include "consumer/output/event_line.h"
#include "consumer/session/session_result.h"

/*
 * Writes a `syscall` line for each of the 20 calls with the most time, and one for all others;
 * writes nothing if the session has no signal `syscall`. `cpu` has the CPU time of its threads.
 */
void session_calls_put(const struct session_result *s, const struct session_cpu *cpu,
		       const struct event_lines *lines, const struct event_subject *subject);

/*
 * Writes `call` of a stack of the signal `oncpu` if it was in a named system call, and
 * `memory_stall` if it was in a memory stall.
 */
void session_calls_write(const struct stack *stack, struct jsonw *w);

#endif
