/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/ticker.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "consumer/link.h"
#include "shared/abi.h"

static const char refused[] = "the kernel does not start the sampling event";

static int enable(const struct ticker *t, enum ticker_rate rate)
{
	return ioctl(t->at[rate].fd, PERF_EVENT_IOC_ENABLE, 0) < 0 ? -errno : 0;
}

static int disable(const struct ticker *t, enum ticker_rate rate)
{
	return ioctl(t->at[rate].fd, PERF_EVENT_IOC_DISABLE, 0) < 0 ? -errno : 0;
}

int ticker_open(struct link *link, uint32_t cpu, uint32_t hz, enum ticker_rate rate,
		struct ticker *ret_ticker, const char **ret_why)
{
	static const uint32_t divisors[TICKER_RATES_] = {
		[TICKER_RECORDER] = RECORDER_DIVISOR,
		[TICKER_CAPTURE] = 1,
	};
	struct ticker t = { .cpu = cpu, .rate = rate };
	int r;

	for (int i = 0; i < TICKER_RATES_; i++)
		t.at[i].fd = -1;
	for (int i = 0; i < TICKER_RATES_; i++) {
		r = link_sampler_open(link, cpu, hz, divisors[i], &t.at[i].fd, ret_why);
		if (r < 0)
			goto fail;
	}
	*ret_why = refused;
	r = enable(&t, rate);
	if (r < 0)
		goto fail;
	*ret_why = NULL;
	*ret_ticker = t;
	return 0;
fail:
	ticker_close(&t);
	return r;
}

void ticker_close(struct ticker *t)
{
	for (int i = 0; i < TICKER_RATES_; i++)
		if (t->at[i].fd >= 0) {
			close(t->at[i].fd);
			t->at[i].fd = -1;
		}
}

int ticker_run(struct ticker *t, enum ticker_rate rate)
{
	enum ticker_rate other = rate == TICKER_CAPTURE ? TICKER_RECORDER : TICKER_CAPTURE;
	int r = disable(t, other);

	t->spreads = false;
	t->rate = rate;
	return r < 0 ? r : enable(t, rate);
}

void ticker_spread(struct ticker *t)
{
	if (t->rate == TICKER_RECORDER)
		t->spreads = enable(t, TICKER_CAPTURE) == 0;
}

void ticker_spread_end(struct ticker *t)
{
	if (t->spreads)
		(void)disable(t, TICKER_CAPTURE);
	t->spreads = false;
}

bool ticker_moves(struct ticker *t)
{
	uint64_t count_ns;

	if (read(t->at[t->rate].fd, &count_ns, sizeof(count_ns)) != sizeof(count_ns) ||
	    count_ns == t->at[t->rate].count_ns)
		return false;
	t->at[t->rate].count_ns = count_ns;
	return true;
}
