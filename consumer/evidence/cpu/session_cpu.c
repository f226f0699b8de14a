/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/cpu/session_cpu.h"

#include <string.h>

#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

/*
 * Name prefixes of the functions that an interrupt of user mode goes through, on x86-64 without and
 * with FRED and on arm64 (arch/x86/entry/entry_64.S, entry_fred.c,
 * arch/arm64/kernel/entry-common.c). A fault goes through other functions.
 */
static const char *const interrupts[] = {
	"asm_sysvec_",	 "asm_common_interrupt", "asm_spurious_interrupt",
	"asm_exc_nmi",	 "fred_extint",		 "fred_sysvec_",
	"el0_interrupt", "el0t_64_irq",		 "el0t_64_fiq",
	"el0t_32_irq",	 "el0t_32_fiq",
};

#define ENTRY_FRAMES 4 /* outermost kernel frames; some of them name the entry */

static bool is_interrupt(const struct stack *stack, const struct named_frame *frames, size_t n)
{
	size_t kernel = MIN((size_t)stack->kernel_frames, n);

	for (size_t i = kernel - MIN(kernel, (size_t)ENTRY_FRAMES); i < kernel; i++)
		for (size_t k = 0; frames[i].fn && k < ARRAY_SIZE(interrupts); k++)
			if (!strncmp(frames[i].fn, interrupts[k], strlen(interrupts[k])))
				return true;
	return false;
}

static struct session_cpu_call *find_call(struct session_cpu *s, uint32_t call)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->of[i].call == call)
			return &s->of[i];
	if (s->count == SESSION_CPU_CALLS)
		return NULL;
	s->of[s->count] = (struct session_cpu_call){ .call = call };
	return &s->of[s->count++];
}

static void add_call(struct session_cpu *s, const struct stack *stack, uint32_t call)
{
	struct session_cpu_call *c = find_call(s, call);

	if (!c) {
		s->of_others += stack->count;
		return;
	}
	c->samples += stack->count;
	c->weight_ns += stack->weight_ns;
}

void session_cpu_add(struct session_cpu *s, const struct stack *stack,
		     const struct named_frame *frames, size_t n)
{
	struct session_cpu_phase *phase = &s->phase[stack->phase];

	phase->samples += stack->count;
	if (stack->flags & SAMPLE_MEMORY_STALL)
		phase->stalled += stack->count;
	if (stack->phase != PHASE_DURING)
		return;
	s->all += stack->count;
	if (stack->call == ACCOUNT_CALL_KERNEL) {
		s->kernel += stack->count;
	} else if (stack->flags & SAMPLE_IN_USER) {
		s->user += stack->count;
		return;
	} else if (stack->call == ACCOUNT_CALL_COMPAT) {
		s->compat += stack->count;
	} else if (stack->call != ACCOUNT_CALL_NONE) {
		s->calls += stack->count;
	} else if (is_interrupt(stack, frames, n)) {
		s->interrupt += stack->count;
		return;
	} else {
		s->fault += stack->count;
	}
	add_call(s, stack, stack->call);
}

uint64_t session_cpu_of(const struct session_cpu *s, uint32_t call, uint64_t *ret_weight_ns)
{
	*ret_weight_ns = 0;
	for (size_t i = 0; i < s->count; i++) {
		if (s->of[i].call != call)
			continue;
		*ret_weight_ns = s->of[i].weight_ns;
		return s->of[i].samples;
	}
	return 0;
}

static void write_places(const struct session_cpu *s, struct jsonw *w)
{
	if (!s->all)
		return;
	jsonw_object(w, "cpu_samples");
	jsonw_u64(w, "all", s->all);
	jsonw_u64(w, "user", s->user);
	jsonw_u64(w, "calls", s->calls);
	jsonw_u64(w, "compat_calls", s->compat);
	jsonw_u64(w, "faults", s->fault);
	jsonw_u64(w, "interrupts", s->interrupt);
	jsonw_u64(w, "kernel_threads", s->kernel);
	jsonw_object_end(w);
}

/* Writes the share of CPU time that was memory stall, in each phase that has samples. */
static void write_stall(const struct session_cpu *s, struct jsonw *w)
{
	uint64_t all = 0;

	for (int i = 0; i < PHASE_COUNT_; i++)
		all += s->phase[i].samples;
	if (!all)
		return;
	jsonw_object(w, "cpu_memory_stall");
	for (int i = 0; i < PHASE_COUNT_; i++) {
		if (!s->phase[i].samples)
			continue;
		jsonw_object(w, stack_table_phase((enum phase)i));
		jsonw_u64(w, "samples", s->phase[i].samples);
		jsonw_u64(w, "stalled", s->phase[i].stalled);
		jsonw_object_end(w);
	}
	jsonw_object_end(w);
}

void session_cpu_write(const struct session_cpu *s, struct jsonw *w)
{
	write_places(s, w);
	write_stall(s, w);
}
