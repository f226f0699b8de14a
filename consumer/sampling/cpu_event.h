/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cpu_event.h: the two perf events that sample one CPU. The broker opens both: one ticks at the
 * recorder's rate, one at the capture's; one of the two runs. A disabled event keeps the rest of
 * its period (perf_swevent_cancel_hrtimer in kernel/events/core.c), whereas changing the rate of an
 * event starts a whole period. So the first tick of a capture comes within one period, after half a
 * period on average, and not on all CPUs at once: cpu_event_spread gives each CPU its own phase.
 * Main thread only.
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
	enum cpu_event_rate rate; /* the one that runs */
	bool spreads;		  /* the capture's event runs too, to use up part of its period */
	struct {
		int fd;
		uint64_t count_ns; /* its count at the last cpu_event_moves: ns that it has run */
	} at[CPU_EVENT_RATES_];
};

/*
 * Asks the broker for both events of a CPU, the capture's at `hz`, and starts the event of `rate`.
 * Returns 0, or -errno of broker_ask_sampler (consumer/broker/broker_ask.h) or of ioctl(2), with
 * the reason in *ret_why, a literal. Release with cpu_event_close.
 */
int cpu_event_open(struct broker_client *link, uint32_t cpu, uint32_t hz, enum cpu_event_rate rate,
		   struct cpu_event *ret_event, const char **ret_why);
void cpu_event_close(struct cpu_event *t);

/* Stops the other event and starts the event of `rate`. Returns 0, or -errno: then neither runs. */
int cpu_event_run(struct cpu_event *t, enum cpu_event_rate rate);

/* Stops both events; cpu_event_run starts one again. Returns 0 or -errno of ioctl(2). */
int cpu_event_stop(struct cpu_event *t);

/*
 * Starts the capture's event in addition to the recorder's. Call cpu_event_spread_end within one
 * period.
 */
void cpu_event_spread(struct cpu_event *t);
void cpu_event_spread_end(struct cpu_event *t);

/*
 * Returns whether the running event's count has grown since the last call. It is false for a CPU
 * that went offline (perf_event_exit_cpu in kernel/events/core.c): the kernel leaves its events as
 * descriptors that never tick again, not even after the CPU is back online.
 */
bool cpu_event_moves(struct cpu_event *t);

#endif
