/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ticker.h: what makes one CPU tick: two sampling events that the broker opened, one at the
 * recorder's rate and one at the capture's, of which one runs. An event that is disabled keeps what
 * was left of its period (perf_swevent_cancel_hrtimer in kernel/events/core.c), where one that is
 * re-rated begins a whole one. So the first tick of a capture comes within a period of it, after
 * half of one on average, and not on all CPUs at once: ticker_spread lets each CPU begin elsewhere.
 * Main thread only.
 */
#ifndef TROCAR_CONSUMER_TICKER_H
#define TROCAR_CONSUMER_TICKER_H

#include <stdbool.h>
#include <stdint.h>

struct link;

enum ticker_rate {
	TICKER_RECORDER,
	TICKER_CAPTURE,
	TICKER_RATES_,
};

struct ticker {
	uint32_t cpu;
	enum ticker_rate rate; /* that runs */
	bool spreads;	       /* the capture's event runs as well, to use up part of its period */
	struct {
		int fd;
		uint64_t count_ns; /* how long it had run at the last look */
	} at[TICKER_RATES_];
};

/*
 * Opens both events of a CPU, the capture's at `hz`, and starts the one of `rate`. 0, or -errno as
 * link_sampler_open (consumer/link.h) or of ioctl(2), with the reason.
 */
int ticker_open(struct link *link, uint32_t cpu, uint32_t hz, enum ticker_rate rate,
		struct ticker *ret_ticker, const char **ret_why);
void ticker_close(struct ticker *t);

/* Lets the event of `rate` run instead of the other. 0, or -errno: then none of them runs. */
int ticker_run(struct ticker *t, enum ticker_rate rate);

/* Lets the capture's event run until ticker_spread_end, within a period from here. */
void ticker_spread(struct ticker *t);
void ticker_spread_end(struct ticker *t);

/*
 * False for the events of a CPU that went offline: they stay behind as descriptors that never tick
 * again, also when the CPU is back: the clock that they count stands still then
 * (perf_event_exit_cpu in kernel/events/core.c). What is asked is whether it has moved since the
 * last call.
 */
bool ticker_moves(struct ticker *t);

#endif
