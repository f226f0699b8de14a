/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/sampling/wait_kind.h"

#include <stddef.h>

#include "shared/tools/macro.h"

#define WAIT_FILE WAIT_KIND_COUNT_ /* the descriptor decides the kind */

#if defined(__x86_64__)
#define WAIT_CALL(name, x86, arm64, kind) [x86] = WAIT_##kind + 1,
#define WAIT_CALL_X86(name, x86, kind)	  [x86] = WAIT_##kind + 1,
#else
#define WAIT_CALL(name, x86, arm64, kind) [arm64] = WAIT_##kind + 1,
#define WAIT_CALL_X86(name, x86, kind)
#endif

/* Kinds by system call, plus 1; 0: no row. */
static const uint8_t of_call[] = {
#include "shared/abi/wait_calls.def"
};

/* Time accounts and off-CPU samples have the same kinds in the same order. */
#define WAIT_KIND(id, json, idle, help)                                  \
	_Static_assert((int)ACCOUNT_##id == (int)WAIT_##id + ACCOUNT_IO, \
		       "a kind of wait is not a part of a time account");
#include "shared/abi/waits.def"
#undef WAIT_KIND

/* A read or write has the kind of its descriptor. */
static enum wait_kind kind_of_descriptor(const struct look_on *on)
{
	switch (on->kind) {
	case LOOK_ON_SOCKET:
		return WAIT_SOCKET;
	case LOOK_ON_FILE:
		return WAIT_IO;
	case LOOK_ON_OTHER:
	case LOOK_ON_TIMER:
		return WAIT_IDLE; /* eventfd, timerfd, a terminal, ... */
	case LOOK_ON_PIPE:
		return WAIT_PIPE;
	default:
		return WAIT_OTHER;
	}
}

static enum wait_kind find_kind(const struct look_record *record)
{
	int kind;

	if (record->head.flags & LOOK_TRACED)
		return WAIT_TRACED;
	if (record->head.flags & LOOK_STOPPED)
		return WAIT_STOPPED;
	if (record->head.flags & LOOK_FROZEN)
		return WAIT_FROZEN;
	if (record->head.flags & LOOK_MEMORY)
		return WAIT_MEMORY;
	if (record->head.flags & LOOK_IO)
		return WAIT_IO;
	if (record->sample.flags & SAMPLE_KTHREAD)
		return WAIT_OTHER;
	if (record->syscall < 0)
		return record->head.flags & LOOK_FAULT ? WAIT_FAULT : WAIT_OTHER;
	if ((size_t)record->syscall >= ARRAY_SIZE(of_call) || !of_call[record->syscall])
		return WAIT_OTHER;
	kind = of_call[record->syscall] - 1;
	return kind == WAIT_FILE ? kind_of_descriptor(&record->on) : (enum wait_kind)kind;
}

uint8_t wait_kind_state(const struct look_record *record)
{
	if (record->head.flags & LOOK_RUNNABLE)
		return WAIT_FOR_CPU;
	return (uint8_t)(WAIT_BLOCKED + find_kind(record));
}

const char *wait_kind_name(uint8_t state)
{
	static const char *const names[] = {
#define WAIT_KIND(id, json, idle, help) [WAIT_##id] = (json),
#include "shared/abi/waits.def"
#undef WAIT_KIND
	};

	return state < WAIT_BLOCKED ? NULL : names[state - WAIT_BLOCKED];
}
