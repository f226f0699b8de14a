/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_cpu.h: sums the CPU samples of a session's threads by context: user mode, system call,
 * page fault; and, for each phase, the part that was memory stall. Report thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_CPU_SESSION_CPU_H
#define TROCAR_CONSUMER_EVIDENCE_CPU_SESSION_CPU_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/naming/frame_name.h"
#include "consumer/sampling/stack_table.h"

struct jsonw;

#define SESSION_CPU_CALLS 1024 /* system calls with their own count */

/* Samples of the phase during: `all` is the sum of the others. */
struct session_cpu {
	uint64_t all;
	uint64_t user;
	uint64_t calls; /* in system calls of this machine */
	uint64_t compat;
	uint64_t fault; /* page faults and other exceptions of user mode */
	uint64_t interrupt;
	uint64_t kernel;    /* kernel threads and workers */
	uint64_t of_others; /* part of `calls`: system calls that did not fit into `of` */
	struct session_cpu_call {
		uint32_t call;
		uint64_t samples, weight_ns;
	} of[SESSION_CPU_CALLS]; /* by system call, unordered */
	size_t count;
	/* For each phase: all samples, and the samples in a memory stall. */
	struct session_cpu_phase {
		uint64_t samples, stalled;
	} phase[PHASE_COUNT_];
};

/* Adds a stack of CPU time; `frames` are its `n` named frames. */
void session_cpu_add(struct session_cpu *s, const struct stack *stack,
		     const struct named_frame *frames, size_t n);

/*
 * Returns the number of samples in a system call, or in another value of enum account_call, and
 * sets *ret_weight_ns to the time that they represent.
 */
uint64_t session_cpu_of(const struct session_cpu *s, uint32_t call, uint64_t *ret_weight_ns);

/* Writes `cpu_samples` and `cpu_memory_stall`; writes nothing without samples. */
void session_cpu_write(const struct session_cpu *s, struct jsonw *w);

#endif
