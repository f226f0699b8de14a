/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/sampling/cpu_event.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "consumer/broker/broker_ask.h"
#include "shared/abi/abi.h"

static const char refused[] = "the kernel does not start the sampling event";

static int enable_event(const struct cpu_event *t, enum cpu_event_rate rate)
{
	return ioctl(t->at[rate].fd, PERF_EVENT_IOC_ENABLE, 0) < 0 ? -errno : 0;
}

static int disable_event(const struct cpu_event *t, enum cpu_event_rate rate)
{
	return ioctl(t->at[rate].fd, PERF_EVENT_IOC_DISABLE, 0) < 0 ? -errno : 0;
}

int cpu_event_open(struct broker_client *link, uint32_t cpu, uint32_t hz, enum cpu_event_rate rate,
		   struct cpu_event *ret_event, const char **ret_why)
{
	static const uint32_t divisors[CPU_EVENT_RATES_] = {
		[CPU_EVENT_RECORDER] = RECORDER_DIVISOR,
		[CPU_EVENT_CAPTURE] = 1,
	};
	struct cpu_event t = { .cpu = cpu, .rate = rate };
	int r;

	for (int i = 0; i < CPU_EVENT_RATES_; i++)
		t.at[i].fd = -1;
	for (int i = 0; i < CPU_EVENT_RATES_; i++) {
		r = broker_ask_sampler(link, cpu, hz, divisors[i], &t.at[i].fd, ret_why);
		if (r < 0)
			goto fail;
	}
	*ret_why = refused;
	r = enable_event(&t, rate);
	if (r < 0)
		goto fail;
	*ret_why = NULL;
	*ret_event = t;
	return 0;
fail:
	cpu_event_close(&t);
	return r;
}

void cpu_event_close(struct cpu_event *t)
{
	for (int i = 0; i < CPU_EVENT_RATES_; i++)
		if (t->at[i].fd >= 0) {
			close(t->at[i].fd);
			t->at[i].fd = -1;
		}
}

int cpu_event_run(struct cpu_event *t, enum cpu_event_rate rate)
{
	enum cpu_event_rate other =
		rate == CPU_EVENT_CAPTURE ? CPU_EVENT_RECORDER : CPU_EVENT_CAPTURE;
	int r = disable_event(t, other);

	t->spreads = false;
	t->rate = rate;
	return r < 0 ? r : enable_event(t, rate);
}

int cpu_event_stop(struct cpu_event *t)
{
	int r = disable_event(t, CPU_EVENT_RECORDER), r2 = disable_event(t, CPU_EVENT_CAPTURE);

	t->spreads = false;
	return r < 0 ? r : r2;
}

void cpu_event_spread(struct cpu_event *t)
{
	if (t->rate == CPU_EVENT_RECORDER)
		t->spreads = enable_event(t, CPU_EVENT_CAPTURE) == 0;
}

void cpu_event_spread_end(struct cpu_event *t)
{
	if (t->spreads)
		(void)disable_event(t, CPU_EVENT_CAPTURE);
	t->spreads = false;
}

bool cpu_event_moves(struct cpu_event *t)
{
	uint64_t count_ns;

	if (read(t->at[t->rate].fd, &count_ns, sizeof(count_ns)) != sizeof(count_ns) ||
	    count_ns == t->at[t->rate].count_ns)
		return false;
	t->at[t->rate].count_ns = count_ns;
	return true;
}
