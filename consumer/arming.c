/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/arming.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer/agent.h"
#include "shared/cleanup.h"
#include "shared/clock.h"
#include "shared/cpus.h"
#include "shared/log.h"
#include "shared/macro.h"

/* Over which the CPUs' first ticks of a capture are spread: not more turns of the loop than this.
 */
#define SPREAD_STEPS 10

/* The loader's own events tick always: nothing is ours to open. */
static bool always(const struct agent *a)
{
	return a->pins.abi.cpus_sampled > 0;
}

static bool needed(const struct agent *a)
{
	return !always(a) && (a->watches.count || a->arming.captures);
}

static enum ticker_rate rate(const struct agent *a)
{
	return a->arming.captures ? TICKER_CAPTURE : TICKER_RECORDER;
}

static void set_divisor(struct agent *a, uint32_t divisor)
{
	__atomic_store_n(&a->pins.control->divisor, divisor, __ATOMIC_SEQ_CST);
}

void arming_init(struct agent *a)
{
	set_divisor(a, always(a) ? RECORDER_DIVISOR : 1);
}

static void close_events(struct arming *m)
{
	for (size_t i = 0; i < m->n_events; i++)
		ticker_close(&m->events[i]);
	loop_remove(TAKE_PTR(m->spread));
	free(m->events);
	m->events = NULL;
	m->n_events = m->n_online = 0;
	m->since_ns = m->retry_ns = 0;
	m->why = NULL;
}

static void close_signal(struct arming_signal *s)
{
	for (size_t i = 0; i < s->n_fds; i++)
		close(s->fds[i]);
	s->n_fds = 0;
}

void arming_done(struct agent *a)
{
	close_events(&a->arming);
	for (int i = 0; i < SIGNAL_COUNT_; i++)
		close_signal(&a->arming.signals[i]);
}

/* The old events of CPUs before `cpu` are of CPUs that went; that of `cpu` itself is kept if alive.
 */
static bool keep(struct arming *m, size_t *at, uint32_t cpu, struct ticker *ret_event)
{
	for (; *at < m->n_events && m->events[*at].cpu <= cpu; (*at)++) {
		struct ticker *e = &m->events[*at];

		if (e->cpu == cpu && ticker_moves(e)) {
			*ret_event = *e;
			(*at)++;
			return true;
		}
		ticker_close(e);
	}
	return false;
}

/* Makes the events those of `cpus`; true when one was opened. m->why says what is missing. */
static bool merge(struct agent *a, const uint32_t *cpus, size_t n, struct ticker *fresh)
{
	struct arming *m = &a->arming;
	size_t kept = 0, at = 0;
	bool opened = false;

	m->n_online = n;
	m->why = NULL;
	for (size_t i = 0; i < n; i++) {
		const char *why = NULL;
		int r;

		if (keep(m, &at, cpus[i], &fresh[kept])) {
			kept++;
			continue;
		}
		r = m->why ? -EAGAIN
			   : ticker_open(a->link, cpus[i], a->pins.abi.hz, rate(a), &fresh[kept],
					 &why);
		if (r == 0) {
			opened = true;
			ticker_spread(&fresh[kept++]);
		} else if (r == -ENODEV) {
			m->n_online--; /* went between the list and here */
		} else if (!m->why) {
			m->why = why;
		}
	}
	for (; at < m->n_events; at++)
		ticker_close(&m->events[at]);
	free(m->events);
	m->events = fresh;
	m->n_events = kept;
	return opened;
}

static void fill_numbers(void *context, struct jsonw *w)
{
	const struct arming *m = context;

	jsonw_u64(w, "count", m->n_online - m->n_events);
}

/*
 * Once when something is missing, once when it is there again. Nothing while the broker is late by
 * the time that a start of it takes: it is asked again as soon as it answers, and after that by the
 * next drain.
 */
static void say_missing(struct agent *a)
{
	struct arming *m = &a->arming;

	if (!m->why == !m->said || (m->why && link_waits(a->link)))
		return;
	m->said = m->why;
	if (!m->why) {
		log_info("sampling: every CPU has its event again");
		return;
	}
	log_warning("sampling: %s: %zu of %zu CPUs have no event, continuing without", m->why,
		    m->n_online - m->n_events, m->n_online);
	line_error(&a->lines, NULL, "sampling_missing",
		   "see that trocar-broker.socket is active, or load with --always oncpu",
		   fill_numbers, m,
		   "%zu of %zu CPUs are not sampled: %s; what is watched has no stacks from there",
		   m->n_online - m->n_events, m->n_online, m->why);
}

/*
 * While it lasts the full-rate events run as well, and longer than a period if the loop is held up:
 * the divisor is theirs, so that the recorder takes a tick too few and none that weighs too much.
 */
static void spread_end(struct agent *a)
{
	struct arming *m = &a->arming;

	for (size_t i = 0; i < m->n_events; i++)
		ticker_spread_end(&m->events[i]);
	loop_remove(TAKE_PTR(m->spread));
	if (!m->captures)
		set_divisor(a, 1);
}

/* Ends the spreading of one CPU after the other, over a period. */
static void on_spread(void *context, uint32_t events)
{
	struct agent *a = context;
	struct arming *m = &a->arming;
	size_t until = ++m->spread_steps * m->n_events / SPREAD_STEPS;

	for (size_t i = 0; i < m->n_events && i < until; i++)
		ticker_spread_end(&m->events[i]);
	if (m->spread_steps == SPREAD_STEPS)
		spread_end(a);
}

static void spread_begin(struct agent *a)
{
	struct arming *m = &a->arming;
	uint64_t step_ns = NSEC_PER_SEC / a->pins.abi.hz / (SPREAD_STEPS + 1);

	m->spread_steps = 0;
	if (!m->spread && loop_timer(a->loop, on_spread, a, &m->spread) < 0)
		m->spread = NULL;
	if (m->spread && loop_timer_set(m->spread, step_ns, step_ns) == 0)
		return;
	spread_end(a);
}

static void look(struct agent *a)
{
	_cleanup_free_ uint32_t *cpus = NULL;
	struct arming *m = &a->arming;
	struct ticker *fresh;
	uint64_t now_ns = clock_mono_ns();
	bool opened = false;
	size_t n = 0;

	fresh = cpus_online(&cpus, &n) == 0 ? calloc(n, sizeof(*fresh)) : NULL;
	set_divisor(a, RECORDER_DIVISOR);
	if (fresh)
		opened = merge(a, cpus, n, fresh);
	else
		m->why = "the list of CPUs cannot be read";
	if (opened)
		spread_begin(a);
	else if (!m->spread && !m->captures)
		set_divisor(a, 1);
	m->retry_ns = m->why ? now_ns + LINK_RETRY_NS : 0;
	if (m->why)
		m->since_ns = 0;
	else if (opened)
		m->since_ns = clock_mono_ns();
	say_missing(a);
}

void arming_look(struct agent *a)
{
	if (needed(a))
		look(a);
}

void arming_follow(struct agent *a)
{
	if (!needed(a))
		close_events(&a->arming);
	else if (!a->arming.n_events)
		arming_retry(a);
}

void arming_retry(struct agent *a)
{
	const struct arming *m = &a->arming;

	if (needed(a) && (m->why || !m->n_events) && clock_mono_ns() >= m->retry_ns)
		look(a);
}

void arming_again(struct agent *a)
{
	a->arming.retry_ns = 0;
	arming_retry(a);
}

/* Where one cannot be switched, its CPU is without: no tick is better than one of wrong weight. */
static void run_all(struct agent *a)
{
	struct arming *m = &a->arming;
	size_t kept = 0;

	for (size_t i = 0; i < m->n_events; i++) {
		if (ticker_run(&m->events[i], rate(a)) == 0) {
			m->events[kept++] = m->events[i];
			continue;
		}
		ticker_close(&m->events[i]);
		m->why = "the kernel does not start a sampling event";
	}
	m->n_events = kept;
}

/*
 * The divisor first on the way up, last on the way down: in between, the recorder takes a tick too
 * few, never one whose weight is too much.
 */
void arming_capture_begin(struct agent *a)
{
	struct arming *m = &a->arming;

	arming_look(a);
	if (m->captures++ || always(a))
		return;
	set_divisor(a, RECORDER_DIVISOR);
	if (!m->n_events)
		arming_retry(a);
	else
		run_all(a);
}

void arming_capture_end(struct agent *a)
{
	struct arming *m = &a->arming;

	if (--m->captures || always(a))
		return;
	run_all(a);
	if (m->spread)
		spread_end(a);
	set_divisor(a, 1);
	arming_follow(a);
}

int arming_signal_hold(struct agent *a, enum signal_bit signal, const char **ret_why)
{
	struct arming_signal *s = &a->arming.signals[signal];
	int r = 0;

	if (!s->n_fds)
		r = link_signal_attach(a->link, signal, s->fds, &s->n_fds, ret_why);
	if (r == 0)
		s->holders++;
	return r;
}

void arming_signal_drop(struct agent *a, enum signal_bit signal)
{
	struct arming_signal *s = &a->arming.signals[signal];

	if (--s->holders == 0)
		close_signal(s);
}

void arming_state(const struct agent *a, size_t *ret_ticking, size_t *ret_missing,
		  const char **ret_why)
{
	const struct arming *m = &a->arming;

	*ret_ticking = always(a) ? a->pins.abi.cpus_sampled : m->n_events;
	*ret_missing = m->n_online - m->n_events;
	*ret_why = m->why;
}

enum arming_by arming_by(const struct agent *a, const char **ret_reason)
{
	const struct arming *m = &a->arming;
	const char *why = NULL;

	if (always(a)) {
		*ret_reason = "loaded with --always oncpu: every CPU ticks, watched or not";
		return ARMING_ALWAYS;
	}
	if (m->why || (!m->n_events && !link_there(a->link, &why))) {
		*ret_reason = m->why ? m->why : why;
		return m->n_events ? ARMING_BROKER : ARMING_NONE;
	}
	*ret_reason = "the broker opens an event per CPU while something is watched";
	return ARMING_BROKER;
}

uint64_t arming_since_ns(const struct agent *a)
{
	if (always(a))
		return 0;
	return a->arming.since_ns ? a->arming.since_ns : UINT64_MAX;
}
