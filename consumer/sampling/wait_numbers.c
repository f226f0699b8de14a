/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/sampling/wait_numbers.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

struct look_on wait_numbers_timer(const struct look_on *on)
{
	return (struct look_on){ .kind = on->kind, .number = on->number };
}

void wait_numbers_add(struct look_on *item, const struct look_on *on)
{
	item->state = MAX(item->state, on->state);
	item->longest_ns = MAX(item->longest_ns, on->longest_ns);
}

/* For a timer that does not run, or was not found, only the clock is known. */
static void write_timer(const struct look_on *on, struct jsonw *w)
{
	static const char *const clocks[] = {
		[CLOCK_REALTIME] = "realtime",
		[CLOCK_MONOTONIC] = "monotonic",
		[CLOCK_PROCESS_CPUTIME_ID] = "process_cputime",
		[CLOCK_THREAD_CPUTIME_ID] = "thread_cputime",
		[CLOCK_BOOTTIME] = "boottime",
		[CLOCK_REALTIME_ALARM] = "realtime_alarm",
		[CLOCK_BOOTTIME_ALARM] = "boottime_alarm",
		[CLOCK_TAI] = "tai",
	};
	char number[16];
	const char *name = NULL;

	if (on->number >= 0 && (size_t)on->number < ARRAY_SIZE(clocks))
		name = clocks[on->number];
	snprintf(number, sizeof(number), "%d", on->number);
	jsonw_string(w, "clock", name ? name : number);
	if (on->state)
		jsonw_u64(w, "left_ms", on->longest_ns / NSEC_PER_MSEC);
}

void wait_numbers_write(const struct look_on *on, struct jsonw *w)
{
	char address[32];

	switch (on->kind) {
	case LOOK_ON_PIPE:
		jsonw_u64(w, "inode", on->inode);
		if (on->state)
			jsonw_bool(w, "full", true);
		break;
	case LOOK_ON_FUTEX:
		snprintf(address, sizeof(address), "0x%" PRIx64, (uint64_t)on->address);
		jsonw_string(w, "address", address);
		break;
	case LOOK_ON_CHILD:
		if (on->number > 0)
			jsonw_u64(w, "pid", (uint64_t)on->number);
		break;
	case LOOK_ON_TRACER:
	case LOOK_ON_SENDER:
		jsonw_string(w, "name", on->name);
		jsonw_u64(w, "pid", (uint64_t)on->number);
		break;
	case LOOK_ON_TIMER:
		write_timer(on, w);
		break;
	case LOOK_ON_SEMAPHORES:
		jsonw_i64(w, "id", on->number);
		break;
	default:
		if (on->name[0])
			jsonw_string(w, "name", on->name);
	}
}
