/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/sampling/looks.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "consumer/io/turn.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/sampling/drain.h"
#include "consumer/sampling/sample_record.h"
#include "consumer/sampling/wait_kind.h"
#include "shared/tools/clock.h"

_Static_assert(sizeof(struct look_record) + 2 * STACK_FRAMES * sizeof(uint64_t) <=
		       3 * LOOKS_READ_BYTES,
	       "a record does not fit behind a read");

void looks_init(struct looks *l, struct pinned_maps *pins, struct drain *drain, uint64_t permille,
		const struct looks_calls *calls, void *context)
{
	*l = (struct looks){ .pins = pins,
			     .drain = drain,
			     .permille = permille,
			     .calls = calls,
			     .context = context,
			     .fd = -1 };
}

void looks_done(struct looks *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

bool looks_is_there(const struct looks *l)
{
	int fd = l->pins->looks_path ? open(l->pins->looks_path, O_RDONLY | O_CLOEXEC) : -1;

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

uint64_t looks_ask(struct looks *l)
{
	l->asked = true;
	return l->pass.number + 1;
}

uint64_t looks_ask_last(struct looks *l)
{
	l->held_again = true;
	return looks_ask(l);
}

uint64_t looks_hold(struct looks *l)
{
	l->holders++;
	looks_forget(l);
	return looks_ask(l);
}

void looks_drop(struct looks *l)
{
	l->holders--;
}

/*
 * The epoch changes when the next pass begins. If it changed now, a running pass would report the
 * rest of its threads in the new epoch, and the next pass would report them as unchanged, although
 * its reader has not seen them.
 */
void looks_forget(struct looks *l)
{
	l->forgets = true;
}

void looks_record(struct looks *l)
{
	l->record = l->pins->looks_path && clock_mono_ns() >= l->record_due_ns;
}

/*
 * Passes begin in the drains of a session, which run at the same interval, slightly early or late.
 */
#define SLACK_NS (5 * NSEC_PER_MSEC)

/* Records the cost of a pass of the recorder, and when the next one is due. */
static void end_record(struct looks *l)
{
	uint64_t apart_ns = l->pass.cpu_ns * 1000 / LOOKS_RECORD_BUDGET_MILLI;

	apart_ns = MIN(MAX(apart_ns, LOOKS_RECORD_EVERY_NS), LOOKS_RECORD_LATEST_NS);
	l->record_due_ns = l->pass.began_ns + apart_ns;
	l->recorded.passes++;
	l->recorded.skipped += apart_ns / LOOKS_RECORD_EVERY_NS - 1;
	l->recorded.cut += l->pass.cut;
	l->recorded.cpu_ns += l->pass.cpu_ns;
}

/*
 * Ends the pass. Schedules the next one late enough that passes use no more of a CPU than the
 * budget. A pass on request does not count: the first pass of a session also reads mappings.
 */
static void end_pass(struct looks *l, bool cut)
{
	uint64_t apart_ns = LOOKS_EVERY_NS;

	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	l->pass.cut = cut;
	/* `looks` recorded reports that were not read: the next pass reports all threads again. */
	l->forgets |= cut;
	if (l->counts)
		apart_ns = MAX(apart_ns, l->pass.cpu_ns * 1000 / l->permille);
	l->due_ns = l->pass.began_ns + apart_ns - SLACK_NS;
	if (l->pass.all)
		end_record(l);
	l->calls->passed(l->context, &l->pass);
}

/* Returns how many passes would have begun by now if the last one had taken no time. */
static uint64_t count_skipped(const struct looks *l, uint64_t now_ns)
{
	uint64_t until_ns = MIN(now_ns, l->due_ns);
	uint64_t apart_ns = until_ns - MIN(until_ns, l->pass.began_ns) + SLACK_NS;

	return apart_ns / LOOKS_EVERY_NS - (apart_ns >= LOOKS_EVERY_NS);
}

/* A session's pass comes first, and reports only the session's threads: it must not wait. */
static bool begin_pass(struct looks *l, uint64_t now_ns)
{
	bool due = l->asked || (l->holders && now_ns >= l->due_ns);
	bool all = l->record && !l->asked;

	if (!due && !all)
		return false;
	l->pass = (struct look_pass){ .number = l->pass.number + 1,
				      .began_ns = now_ns,
				      .skipped = count_skipped(l, now_ns),
				      .all = all };
	l->counts = !l->asked && !all;
	l->asked = false;
	l->record = l->record && !all;
	l->pins->control->look_mode = all	      ? LOOK_ALL
				      : l->held_again ? LOOK_HELD_AGAIN
						      : LOOK_SESSIONS;
	l->held_again = l->held_again && all;
	l->pins->control->look_epoch += l->forgets;
	l->forgets = false;
	l->at = l->have = 0;
	l->walked = 0;
	l->fd = open(l->pins->looks_path, O_RDONLY | O_CLOEXEC);
	if (l->fd < 0)
		end_pass(l, true);
	return l->fd >= 0;
}

/* Chooses the budget for the current stack. */
static enum drain_effort choose_effort(struct looks *l)
{
	if (!l->pass.all)
		return DRAIN_READ;
	return l->walked++ < LOOKS_RECORD_READS ? DRAIN_ASK : DRAIN_KNOWN;
}

/* Takes one complete record. False if it is malformed: then the rest of the pass is useless. */
static bool take_record(struct looks *l, const struct look_head *head)
{
	const struct look_record *record = (const struct look_record *)head;
	struct look_seen seen = { .head = head };

	if (head->flags & LOOK_PAUSE)
		return true;
	if (head->slot >= l->pins->abi.slots || !head->tid)
		return false;
	if (!(head->flags & LOOK_AS_BEFORE)) {
		if (head->bytes < sizeof(*record))
			return false;
		seen.sample = drain_decode(l->drain, &record->sample,
					   head->bytes - offsetof(struct look_record, sample),
					   choose_effort(l), &seen.process);
		if (!seen.sample)
			return false;
		seen.sample->wait = wait_kind_state(record);
		seen.record = record;
	}
	l->calls->seen(l->context, head->slot, &l->pass, &seen);
	return true;
}

/* Reads once more. Returns 1, 0 at the end, or -errno. */
static int read_more(struct looks *l)
{
	ssize_t n;

	memmove(l->buffer, l->buffer + l->at, l->have - l->at);
	l->have -= l->at;
	l->at = 0;
	do
		n = read(l->fd, l->buffer + l->have, LOOKS_READ_BYTES);
	while (n < 0 && (errno == EINTR || errno == EAGAIN));
	if (n <= 0)
		return n < 0 ? -errno : 0;
	l->have += (size_t)n;
	return 1;
}

/* Takes the next record, reading if needed. Returns 1, 0 at the end, or -errno. */
static int take_next(struct looks *l)
{
	const struct look_head *head;
	int r;

	for (;;) {
		size_t left = l->have - l->at;

		head = (const struct look_head *)(l->buffer + l->at);
		if (left >= sizeof(*head) && (head->bytes < sizeof(*head) || head->bytes % 8 ||
					      head->bytes > 3 * LOOKS_READ_BYTES))
			return -EBADMSG;
		if (left >= sizeof(*head) && left >= head->bytes)
			break;
		r = read_more(l);
		if (r <= 0)
			return r;
	}
	l->at += head->bytes;
	return take_record(l, head) ? 1 : -EBADMSG;
}

void looks_step(struct looks *l)
{
	uint64_t until_ns = turn_until_ns(), begun_ns = clock_thread_ns();
	int r = 1;

	if (l->steps || (l->fd < 0 && !begin_pass(l, clock_mono_ns())))
		return;
	l->steps = true;
	do
		r = take_next(l);
	while (r > 0 && clock_mono_ns() < until_ns);
	l->pass.cpu_ns += clock_thread_ns() - begun_ns;
	if (r <= 0)
		end_pass(l, r < 0);
	l->steps = false;
}

bool looks_has_rest(const struct looks *l)
{
	return l->fd >= 0 || l->asked || (l->holders && clock_mono_ns() >= l->due_ns);
}
