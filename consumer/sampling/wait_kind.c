/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/sampling/wait_kind.h"

#include <stddef.h>
#include <sys/syscall.h>

#include "shared/tools/macro.h"

/* Kinds by system call, plus 1; 0: no row. */
static const uint8_t of_call[] = {
#define WAIT_SYSCALL(name, kind) [__NR_##name] = WAIT_##kind + 1,
#include "shared/abi/wait_kinds.def"
#undef WAIT_SYSCALL
};

/* A read or write waits for what its descriptor is. */
static enum wait_kind kind_of_descriptor(const struct look_on *on)
{
	switch (on->kind) {
	case LOOK_ON_SOCKET:
		return WAIT_SOCKET;
	case LOOK_ON_FILE:
		return WAIT_IO;
	case LOOK_ON_OTHER:
		return WAIT_IDLE; /* eventfd, timerfd, a terminal, ... */
	default:
		return WAIT_PIPE;
	}
}

static enum wait_kind find_kind(const struct look_record *record)
{
	enum wait_kind kind;

	if (record->head.flags & LOOK_STOPPED)
		return WAIT_OTHER;
	if (record->head.flags & LOOK_MEMORY)
		return WAIT_MEMORY;
	if (record->head.flags & LOOK_IO)
		return WAIT_IO;
	if (record->sample.flags & SAMPLE_KTHREAD)
		return WAIT_OTHER;
	if (record->syscall < 0)
		return WAIT_FAULT;
	if ((size_t)record->syscall >= ARRAY_SIZE(of_call) || !of_call[record->syscall])
		return WAIT_OTHER;
	kind = (enum wait_kind)(of_call[record->syscall] - 1);
	return kind == WAIT_PIPE ? kind_of_descriptor(&record->on) : kind;
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
