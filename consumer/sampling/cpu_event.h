/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cpu_event.h: what makes one CPU tick: two sampling events that the broker opened, one at the
 * recorder's rate and one at the capture's, of which one runs. An event that is disabled keeps what
 * was left of its period (perf_swevent_cancel_hrtimer in kernel/events/core.c), where one that is
 * re-rated begins a whole one. So the first tick of a capture comes within a period of it, after
 * half of one on average, and not on all CPUs at once: cpu_event_spread lets each CPU begin
 * elsewhere. Main thread only.
 */
#ifndef TROCAR_CONSUMER_SAMPLING_CPU_EVENT_H
#define TROCAR_CONSUMER_SAMPLING_CPU_EVENT_H

#include <stdbool.h>
#include <stdint.h>

struct broker_client;

enum cpu_event_rate {
	CPU_EVENT_RECORDER,
	CPU_EVENT_CAPTURE,
	CPU_EVENT_RATES_,
};

struct cpu_event {
	uint32_t cpu;
	enum cpu_event_rate rate; /* that runs */
	bool spreads; /* the capture's event runs as well, to use up part of its period */
	struct {
		int fd;
		uint64_t count_ns; /* how long it had run at the last look */
	} at[CPU_EVENT_RATES_];
};

/*
 * Opens both events of a CPU, the capture's at `hz`, and starts the one of `rate`. 0, or -errno as
 * broker_ask_sampler (consumer/broker/broker_client.h) or of ioctl(2), with the reason.
 */
int cpu_event_open(struct broker_client *link, uint32_t cpu, uint32_t hz, enum cpu_event_rate rate,
		   struct cpu_event *ret_event, const char **ret_why);
void cpu_event_close(struct cpu_event *t);

/* Lets the event of `rate` run instead of the other. 0, or -errno: then none of them runs. */
int cpu_event_run(struct cpu_event *t, enum cpu_event_rate rate);

/* Lets the capture's event run until cpu_event_spread_end, within a period from here. */
void cpu_event_spread(struct cpu_event *t);
void cpu_event_spread_end(struct cpu_event *t);

/*
 * False for the events of a CPU that went offline: they stay behind as descriptors that never tick
 * again, also when the CPU is back: the clock that they count stands still then
 * (perf_event_exit_cpu in kernel/events/core.c). What is asked is whether it has moved since the
 * last call.
 */
bool cpu_event_moves(struct cpu_event *t);

#endif
