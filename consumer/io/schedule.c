/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/io/schedule.h"

#include <sys/epoll.h>

#include "shared/tools/clock.h"

/*
 * The drain interval while only the recorder runs. At the default rate a CPU takes 97 samples a
 * second; with 33 frames each, 5 s of them are 60 KiB, so half the ring (2 MiB) holds the samples
 * of 35 busy CPUs. With more CPUs or deeper stacks, the ring wakes the consumer when it is half
 * full; the other half is the time until the consumer drains.
 */
#define DRAIN_RECORDER_NS (5 * NSEC_PER_SEC)
#define DRAIN_SESSION_NS  (50 * NSEC_PER_MSEC)
#define DRAIN_SOON_NS	  (2 * NSEC_PER_MSEC)

/*
 * A scan runs this long after the last watch has ended, although nothing is watched: by then, ended
 * processes no longer linger, and the agent gives their memory back.
 */
#define SCAN_AFTERMATH_NS (60 * NSEC_PER_SEC)

/* One scan serves a burst of requests. */
#define SCAN_SOON_NS (100 * NSEC_PER_MSEC)

/*
 * The kernel side wakes the consumer only for the first event of a burst (EVENT_WAKE_NS, 50 ms).
 * This timer is longer and drains the rest of the burst. While nothing is watched no other timer
 * runs.
 */
#define EVENTS_SETTLE_NS (60 * NSEC_PER_MSEC)

/* While something is watched, scans run on the drain's wake-ups and need none of their own. */
static void on_drain(void *context, uint32_t events)
{
	struct schedule *s = context;
	uint64_t now_ns = clock_mono_ns();

	s->drain_due_ns = s->drain_every_ns ? now_ns + s->drain_every_ns : 0;
	s->calls->drain(s->context);
	if (s->watches && now_ns - s->scanned_ns + DRAIN_RECORDER_NS / 2 >= SCHEDULE_SCAN_NS)
		s->calls->scan(s->context);
}

static void on_events(void *context, uint32_t events)
{
	struct schedule *s = context;

	s->calls->drain(s->context);
	s->settling = true;
	loop_timer_set(s->settle_timer, EVENTS_SETTLE_NS, 0);
}

/*
 * The consumer checks for losses at most once a second. If no other drain follows a burst, drains
 * once more a second later, so that one check happens after all losses of the burst.
 */
static void on_settle(void *context, uint32_t events)
{
	struct schedule *s = context;

	bool last = s->settling && !s->drain_every_ns;

	s->calls->drain(s->context);
	s->settling = false;
	if (last)
		loop_timer_set(s->settle_timer, NSEC_PER_SEC, 0);
	s->calls->settle(s->context);
}

static void on_scan(void *context, uint32_t events)
{
	struct schedule *s = context;

	s->calls->drain(s->context);
	s->calls->scan(s->context);
}

int schedule_init(struct schedule *s, struct loop *loop, const struct schedule_calls *calls,
		  void *context)
{
	int r;

	*s = (struct schedule){ .calls = calls, .context = context };
	r = loop_timer(loop, on_drain, s, &s->drain_timer);
	if (r < 0)
		return r;
	r = loop_timer(loop, on_settle, s, &s->settle_timer);
	if (r < 0)
		return r;
	return loop_timer(loop, on_scan, s, &s->scan_timer);
}

void schedule_done(struct schedule *s)
{
	loop_remove(s->drain_timer);
	loop_remove(s->settle_timer);
	loop_remove(s->scan_timer);
	*s = (struct schedule){};
}

int schedule_listen(struct schedule *s, struct loop *loop, int samples_fd, int events_fd)
{
	struct loop_source *source;
	int r = loop_add(loop, samples_fd, EPOLLIN | EPOLLET, on_drain, s, &source);

	if (r < 0)
		return r;
	return loop_add(loop, events_fd, EPOLLIN | EPOLLET, on_events, s, &source);
}

/* Sets the time of the next drain, and its interval. */
static void set_drain(struct schedule *s, uint64_t now_ns, uint64_t due_ns)
{
	s->drain_due_ns = due_ns;
	loop_timer_set(s->drain_timer, MAX(due_ns, now_ns + 1) - now_ns, s->drain_every_ns);
}

/*
 * A change of the pace only moves the next drain earlier: watches that come and go faster than the
 * interval must not postpone it for ever.
 */
static void set_drain_pace(struct schedule *s)
{
	uint64_t every_ns = s->sessions ? DRAIN_SESSION_NS : s->watches ? DRAIN_RECORDER_NS : 0;
	uint64_t now_ns = clock_mono_ns();

	if (!s->drain_timer || every_ns == s->drain_every_ns)
		return;
	s->drain_every_ns = every_ns;
	if (every_ns)
		set_drain(s, now_ns,
			  s->drain_due_ns ? MIN(s->drain_due_ns, now_ns + every_ns)
					  : now_ns + every_ns);
	else if (s->drain_due_ns)
		set_drain(s, now_ns, s->drain_due_ns);
}

/* Sets the next scan to `due_ns` unless it is due before that already. */
static void set_scan(struct schedule *s, uint64_t now_ns, uint64_t due_ns)
{
	if (!s->scan_timer || (s->scan_due_ns && s->scan_due_ns <= due_ns))
		return;
	s->scan_due_ns = due_ns;
	loop_timer_set(s->scan_timer, MAX(due_ns, now_ns + 1) - now_ns, 0);
}

/*
 * Works like set_drain_pace: changes of watches and rules move the next scan earlier or leave it.
 * While something is watched, a drain before the due time runs the scan: half a drain's interval
 * allows for that.
 */
static void set_scan_pace(struct schedule *s)
{
	uint64_t every_ns = s->watches ? SCHEDULE_SCAN_NS : s->idle_scan_ns;
	uint64_t now_ns = clock_mono_ns();

	if (every_ns)
		set_scan(s, now_ns, MAX(now_ns, s->scanned_ns + every_ns) + DRAIN_RECORDER_NS / 2);
	if (!s->watches && s->aftermath_ns > now_ns)
		set_scan(s, now_ns, s->aftermath_ns);
}

void schedule_watches(struct schedule *s, uint32_t watches)
{
	if (s->watches && !watches)
		s->aftermath_ns = clock_mono_ns() + SCAN_AFTERMATH_NS;
	s->watches = watches;
	set_drain_pace(s);
	set_scan_pace(s);
}

void schedule_sessions(struct schedule *s, uint32_t sessions)
{
	s->sessions = sessions;
	set_drain_pace(s);
}

void schedule_idle_scan(struct schedule *s, uint64_t every_ns)
{
	s->idle_scan_ns = every_ns;
	set_scan_pace(s);
}

void schedule_drain_soon(struct schedule *s)
{
	uint64_t now_ns = clock_mono_ns();

	if (s->drain_timer)
		set_drain(s, now_ns, now_ns + DRAIN_SOON_NS);
}

void schedule_drain_by(struct schedule *s, uint64_t due_ns)
{
	uint64_t now_ns = clock_mono_ns();

	due_ns = MAX(due_ns, now_ns + DRAIN_SOON_NS);
	if (s->drain_timer && (!s->drain_due_ns || due_ns < s->drain_due_ns))
		set_drain(s, now_ns, due_ns);
}

/* The check for losses that on_settle makes a second later follows the last of these calls. */
void schedule_settle_soon(struct schedule *s)
{
	s->settling = true;
	if (s->settle_timer)
		loop_timer_set(s->settle_timer, DRAIN_SOON_NS, 0);
}

void schedule_scan_soon(struct schedule *s)
{
	uint64_t now_ns = clock_mono_ns();

	set_scan(s, now_ns, now_ns + SCAN_SOON_NS);
}

void schedule_repair_soon(struct schedule *s)
{
	uint64_t now_ns = clock_mono_ns(), apart_ns = SCHEDULE_REPAIR_TIMES * s->scan_cpu_ns;

	apart_ns = MIN(MAX(apart_ns, SCHEDULE_REPAIR_NS), SCHEDULE_SCAN_NS);
	set_scan(s, now_ns, MAX(now_ns + SCAN_SOON_NS, s->scanned_ns + apart_ns));
}

void schedule_scan_again(struct schedule *s)
{
	set_scan(s, clock_mono_ns(), s->scanned_ns + SCHEDULE_SCAN_NS);
}

void schedule_scanned(struct schedule *s, uint64_t now_ns)
{
	s->scanned_ns = now_ns;
	s->scan_due_ns = 0;
	set_scan_pace(s);
	if (s->scan_timer && !s->scan_due_ns)
		loop_timer_set(s->scan_timer, 0, 0);
}

void schedule_scan_took(struct schedule *s, uint64_t cpu_ns)
{
	s->scan_cpu_ns = cpu_ns;
}
