/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_cpu.h: sums where the threads of a session ran while it captured: in user mode, in which
 * system call, in page faults; and, of each phase, how much of it was memory stall. Report thread
 * only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_CPU_SESSION_CPU_H
#define TROCAR_CONSUMER_EVIDENCE_CPU_SESSION_CPU_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/naming/frame_name.h"
#include "consumer/sampling/stack_table.h"

struct jsonw;

#define SESSION_CPU_CALLS 1024 /* system calls with a count of their own */

/* Samples of the phase during: `all` is the sum of the others. */
struct session_cpu {
	uint64_t all;
	uint64_t user;
	uint64_t calls; /* in system calls of this machine */
	uint64_t compat;
	uint64_t fault; /* page faults and other exceptions of user mode */
	uint64_t interrupt;
	uint64_t kernel;    /* kernel threads and workers */
	uint64_t of_others; /* of `calls`: those with a call that found no room in `of` */
	struct session_cpu_call {
		uint32_t call;
		uint64_t samples, weight_ns;
	} of[SESSION_CPU_CALLS]; /* by system call, in no order */
	size_t count;
	/* Of each phase: all samples, and those in a memory stall. */
	struct session_cpu_phase {
		uint64_t samples, stalled;
	} phase[PHASE_COUNT_];
};

/* Adds a stack of CPU time; `frames` are its `n` named frames. */
void session_cpu_add(struct session_cpu *s, const struct stack *stack,
		     const struct named_frame *frames, size_t n);

/*
 * Returns the samples of a system call, or of another value of enum account_call, and in
 * *ret_weight_ns the time that they stand for.
 */
uint64_t session_cpu_of(const struct session_cpu *s, uint32_t call, uint64_t *ret_weight_ns);

/* Writes `cpu_samples` and `cpu_memory_stall`; nothing without samples. */
void session_cpu_write(const struct session_cpu *s, struct jsonw *w);

#endif
