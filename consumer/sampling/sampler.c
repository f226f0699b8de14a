/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/sampling/sampler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer/broker/broker_client.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/cpus.h"
#include "shared/tools/log.h"
#include "shared/tools/macro.h"

/*
 * Number of steps in which the CPUs' events get different phases: at most this many timer
 * iterations of the loop.
 */
#define SPREAD_STEPS 10

/* Whether the loader's own events always tick: then the consumer opens none. */
static bool is_always(const struct sampler *s)
{
	return s->pins->abi.cpus_sampled > 0;
}

static bool is_needed(const struct sampler *s)
{
	return !is_always(s) && (s->watched || s->captures);
}

static enum cpu_event_rate needed_rate(const struct sampler *s)
{
	return s->captures ? CPU_EVENT_CAPTURE : CPU_EVENT_RECORDER;
}

static void set_divisor(struct sampler *s, uint32_t divisor)
{
	__atomic_store_n(&s->pins->control->divisor, divisor, __ATOMIC_SEQ_CST);
}

void sampler_init(struct sampler *s, const struct pinned_maps *pins, struct loop *loop,
		  struct broker_client *link, const struct event_lines *lines)
{
	*s = (struct sampler){ .pins = pins, .loop = loop, .broker = link, .lines = lines };
}

void sampler_start(struct sampler *s)
{
	set_divisor(s, is_always(s) ? RECORDER_DIVISOR : 1);
}

static void close_events(struct sampler *s)
{
	for (size_t i = 0; i < s->n_events; i++)
		cpu_event_close(&s->events[i]);
	loop_remove(TAKE_PTR(s->spread));
	loop_remove(TAKE_PTR(s->rest));
	free(s->events);
	s->events = NULL;
	s->n_events = s->n_online = 0;
	s->since_ns = s->retry_ns = 0;
	s->missing_reason = NULL;
}

void sampler_done(struct sampler *s)
{
	close_events(s);
}

/*
 * Closes the old events of CPUs before `cpu`, which went offline. Returns that of `cpu` if it still
 * ticks.
 */
static bool keep_event(struct sampler *s, size_t *at, uint32_t cpu, struct cpu_event *ret_event)
{
	for (; *at < s->n_events && s->events[*at].cpu <= cpu; (*at)++) {
		struct cpu_event *e = &s->events[*at];

		if (e->cpu == cpu && cpu_event_moves(e)) {
			*ret_event = *e;
			(*at)++;
			return true;
		}
		cpu_event_close(e);
	}
	return false;
}

/*
 * Keeps, opens and closes events so that `cpus` have them; true if it opened one. s->why has the
 * reason for a missing event.
 */
static bool merge_events(struct sampler *s, const uint32_t *cpus, size_t n, struct cpu_event *fresh)
{
	size_t kept = 0, at = 0;
	bool opened = false;

	s->n_online = n;
	s->missing_reason = NULL;
	for (size_t i = 0; i < n; i++) {
		const char *why = NULL;
		int r;

		if (keep_event(s, &at, cpus[i], &fresh[kept])) {
			kept++;
			continue;
		}
		r = s->missing_reason ? -EAGAIN
				      : cpu_event_open(s->broker, cpus[i], s->pins->abi.hz,
						       needed_rate(s), &fresh[kept], &why);
		if (r == 0) {
			opened = true;
			cpu_event_spread(&fresh[kept++]);
		} else if (r == -ENODEV) {
			s->n_online--; /* went offline after the list was read */
		} else if (!s->missing_reason) {
			s->missing_reason = why;
		}
	}
	for (; at < s->n_events; at++)
		cpu_event_close(&s->events[at]);
	free(s->events);
	s->events = fresh;
	s->n_events = kept;
	return opened;
}

static void fill_numbers(void *context, struct jsonw *w)
{
	const struct sampler *s = context;

	jsonw_u64(w, "count", s->n_online - s->n_events);
}

/*
 * Writes one line when events are missing and one when all have returned. Writes none while the
 * broker may still be starting: the consumer asks again when the broker answers, and after its
 * start time at the next drain.
 */
static void say_missing(struct sampler *s)
{
	if (!s->missing_reason == !s->logged_reason ||
	    (s->missing_reason && broker_client_waits(s->broker)))
		return;
	s->logged_reason = s->missing_reason;
	if (!s->missing_reason) {
		log_info("sampling: every CPU has its event again");
		return;
	}
	log_warning("sampling: %s: %zu of %zu CPUs have no event, continuing without",
		    s->missing_reason, s->n_online - s->n_events, s->n_online);
	event_line_error(s->lines, NULL, "sampling_missing",
			 "start trocar-broker.socket, or load with --always oncpu", fill_numbers, s,
			 "%zu of %zu CPUs are not sampled: %s; watches have no stacks from there",
			 s->n_online - s->n_events, s->n_online, s->missing_reason);
}

/*
 * Ends the spread on all CPUs and resets the divisor. During the spread the capture's events run as
 * well, for more than a period if the loop is held up. The divisor is set for their rate, so the
 * recorder may miss a tick, but no tick counts for too much time.
 */
static void end_spread(struct sampler *s)
{
	for (size_t i = 0; i < s->n_events; i++)
		cpu_event_spread_end(&s->events[i]);
	loop_remove(TAKE_PTR(s->spread));
	if (!s->captures)
		set_divisor(s, 1);
}

/* Ends the spread on one CPU after the other, over one period. */
static void on_spread(void *context, uint32_t events)
{
	struct sampler *s = context;
	size_t until = ++s->spread_steps * s->n_events / SPREAD_STEPS;

	for (size_t i = 0; i < s->n_events && i < until; i++)
		cpu_event_spread_end(&s->events[i]);
	if (s->spread_steps == SPREAD_STEPS)
		end_spread(s);
}

static void begin_spread(struct sampler *s)
{
	uint64_t step_ns = NSEC_PER_SEC / s->pins->abi.hz / (SPREAD_STEPS + 1);

	s->spread_steps = 0;
	if (!s->spread && loop_timer(s->loop, on_spread, s, &s->spread) < 0)
		s->spread = NULL;
	if (s->spread && loop_timer_set(s->spread, step_ns, step_ns) == 0)
		return;
	end_spread(s);
}

static void follow_cpus(struct sampler *s)
{
	_cleanup_free_ uint32_t *cpus = NULL;
	struct cpu_event *fresh;
	uint64_t now_ns = clock_mono_ns();
	bool opened = false;
	size_t n = 0;

	fresh = cpus_online(&cpus, &n) == 0 ? calloc(n, sizeof(*fresh)) : NULL;
	set_divisor(s, RECORDER_DIVISOR);
	if (fresh)
		opened = merge_events(s, cpus, n, fresh);
	else
		s->missing_reason = "the list of CPUs cannot be read";
	if (opened)
		begin_spread(s);
	else if (!s->spread && !s->captures)
		set_divisor(s, 1);
	s->retry_ns = s->missing_reason ? now_ns + BROKER_CLIENT_RETRY_NS : 0;
	if (s->missing_reason)
		s->since_ns = 0;
	else if (opened)
		s->since_ns = clock_mono_ns();
	say_missing(s);
}

void sampler_look(struct sampler *s)
{
	if (is_needed(s))
		follow_cpus(s);
}

/*
 * Switches every event to the needed rate. Closes an event that the kernel refuses to switch: no
 * tick is better than a tick of wrong weight.
 */
static void switch_rates(struct sampler *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n_events; i++) {
		if (cpu_event_run(&s->events[i], needed_rate(s)) == 0) {
			s->events[kept++] = s->events[i];
			continue;
		}
		cpu_event_close(&s->events[i]);
		s->missing_reason = "the kernel does not start a sampling event";
	}
	s->n_events = kept;
}

static void on_rest_over(void *context, uint32_t events)
{
	close_events(context);
}

/* Stops the events and closes them later; closes them at once if one does not stop. */
static void begin_rest(struct sampler *s)
{
	bool stopped = s->n_events > 0 && loop_timer(s->loop, on_rest_over, s, &s->rest) == 0 &&
		       loop_timer_set(s->rest, SAMPLER_REST_NS, 0) == 0;

	if (s->spread)
		end_spread(s);
	for (size_t i = 0; i < s->n_events; i++)
		stopped = cpu_event_stop(&s->events[i]) == 0 && stopped;
	s->since_ns = 0;
	if (!stopped)
		close_events(s);
}

/* Starts the stopped events. */
static void end_rest(struct sampler *s)
{
	loop_remove(TAKE_PTR(s->rest));
	switch_rates(s);
	s->since_ns = s->missing_reason ? 0 : clock_mono_ns();
}

static void follow_need(struct sampler *s)
{
	if (!is_needed(s)) {
		if (!s->rest)
			begin_rest(s);
		return;
	}
	if (s->rest)
		end_rest(s);
	if (!s->n_events)
		sampler_retry(s);
}

void sampler_watched(struct sampler *s, bool watched)
{
	s->watched = watched;
	follow_need(s);
}

void sampler_retry(struct sampler *s)
{
	if (is_needed(s) && (s->missing_reason || !s->n_events) && clock_mono_ns() >= s->retry_ns)
		follow_cpus(s);
}

void sampler_again(struct sampler *s)
{
	s->retry_ns = 0;
	sampler_retry(s);
}

/*
 * Sets the divisor first when a capture begins and last when it ends: in between, the recorder
 * may miss a tick, but no tick counts for too much time.
 */
void sampler_capture_begin(struct sampler *s)
{
	sampler_look(s);
	if (s->captures++ || is_always(s))
		return;
	set_divisor(s, RECORDER_DIVISOR);
	if (s->rest)
		end_rest(s);
	else if (s->n_events)
		switch_rates(s);
	if (!s->n_events)
		sampler_retry(s);
}

void sampler_capture_end(struct sampler *s)
{
	if (--s->captures || is_always(s))
		return;
	switch_rates(s);
	if (s->spread)
		end_spread(s);
	set_divisor(s, 1);
	follow_need(s);
}

void sampler_state(const struct sampler *s, size_t *ret_ticking, size_t *ret_missing,
		   const char **ret_why)
{
	*ret_ticking = is_always(s) ? s->pins->abi.cpus_sampled : s->rest ? 0 : s->n_events;
	*ret_missing = s->n_online - s->n_events;
	*ret_why = s->missing_reason;
}

enum sampler_by sampler_by(const struct sampler *s, const char **ret_reason)
{
	const char *why = NULL;

	if (is_always(s)) {
		*ret_reason = "loaded with --always oncpu: every CPU is sampled, watched or not";
		return SAMPLER_ALWAYS;
	}
	if (s->missing_reason || (!s->n_events && !broker_client_there(s->broker, &why))) {
		*ret_reason = s->missing_reason ? s->missing_reason : why;
		return s->n_events ? SAMPLER_BROKER : SAMPLER_NONE;
	}
	*ret_reason = "the broker opens an event per CPU while something is watched";
	return SAMPLER_BROKER;
}

uint64_t sampler_since_ns(const struct sampler *s)
{
	if (is_always(s))
		return 0;
	return s->since_ns ? s->since_ns : UINT64_MAX;
}
