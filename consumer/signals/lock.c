/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signal `lock`: for which locks the session's threads waited, how often and how long, and who
 * ended the long waits. The broker attaches two programs for the session: that of the time accounts
 * (bpf/account.bpf.c), which knows since when a thread waits, and one at each wake-up
 * (bpf/lock.bpf.c).
 */
#include <stdlib.h>

#include "consumer/kernel/pinned_maps.h"
#include "consumer/signals/accounts_hold.h"
#include "consumer/signals/lock_waits.h"
#include "consumer/signals/signal_programs.h"
#include "consumer/signals/signals.h"
#include "shared/tools/macro.h"

struct lock {
	struct signal signal;
	struct accounts_hold hold;
	bool held;		     /* both programs are attached for this session */
	struct lock_baseline before; /* owned */
	struct lock_waits waits;     /* owned */
};

static const char unreadable[] = "the waits for locks cannot be read";

static struct lock *lock_of(struct signal *s)
{
	return (struct lock *)s;
}

/* Returns true where time was lost: a lock is nothing that the kernel counts as pressure. */
static bool is_auto(const struct trigger_reason *reason)
{
	return trigger_reason_is_stall(reason);
}

static struct signal *create_lock(const struct signal_host *host,
				  const struct signal_target *target)
{
	struct lock *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->signal.why = accounts_hold_reason(host);
	return &s->signal;
}

static void destroy_lock(struct signal *signal)
{
	struct lock *s = lock_of(signal);

	lock_maps_forget(&s->before);
	lock_waits_done(&s->waits);
	free(s);
}

/* Lets go of the programs, that of the wake-ups first: it reads the accounts. */
static void drop_programs(struct lock *s, const struct signal_host *host, bool of_waits)
{
	if (of_waits)
		signal_programs_drop(host->programs, SIGNAL_LOCK);
	accounts_hold_leave(&s->hold, host);
	s->held = false;
}

/*
 * Attaches the program of the accounts, which also enters the threads that wait already, and then
 * that of the wake-ups. What a consumer left that was killed is removed before.
 */
static void attach_lock(struct signal *signal, const struct signal_host *host,
			const struct signal_target *target)
{
	struct lock *s = lock_of(signal);

	if (!accounts_hold_attach(&s->hold, signal, host, target))
		return;
	if (!host->programs->of[SIGNAL_LOCK].holders)
		lock_maps_sweep(host->pins, true);
	if (signal_programs_hold(host->programs, SIGNAL_LOCK, &signal->why) < 0) {
		drop_programs(s, host, false);
		return;
	}
	s->held = true;
	if (lock_waits_begin(host->pins, target->slot, &s->before) < 0) {
		drop_programs(s, host, true);
		signal->why = unreadable;
	}
}

static void end_lock(struct signal *signal, const struct signal_host *host,
		     const struct signal_target *target)
{
	struct lock *s = lock_of(signal);

	if (!s->held)
		return;
	s->hold.shared = target->shared && !target->only_tgid;
	if (!s->hold.shared &&
	    lock_waits_end(host->pins, target->slot, target->only_tgid, &s->before, &s->waits) == 0)
		signal->locks = &s->waits;
	else if (!s->hold.shared)
		signal->why = unreadable;
	drop_programs(s, host, true);
	lock_maps_forget(&s->before);
	lock_maps_sweep(host->pins, false);
}

/* Writes the sums over all locks; the lines of the locks have the rest. */
static void write_sums(const struct lock_waits *waits, struct jsonw *w)
{
	jsonw_u64(w, "locks", waits->all.locks);
	jsonw_u64(w, "waits", waits->all.waits);
	jsonw_u64(w, "waited_ms", waits->all.total_ns / NSEC_PER_MSEC);
	jsonw_u64(w, "open", waits->all.open);
	jsonw_u64(w, "open_ms", waits->all.open_ns / NSEC_PER_MSEC);
	jsonw_u64(w, "longest_ms", waits->all.longest_ns / NSEC_PER_MSEC);
	if (waits->wakers_lost)
		jsonw_u64(w, "wakers_left_out", waits->wakers_lost);
}

static void write_lock(const struct signal *signal, struct jsonw *w)
{
	const struct lock *s = (const struct lock *)signal;

	if (!signal->locks) {
		accounts_hold_write_missing(&s->hold, signal, "locks", "locks_reason", w);
		return;
	}
	jsonw_object(w, "locks");
	write_sums(signal->locks, w);
	if (s->hold.late_ms)
		jsonw_u64(w, "late_ms", s->hold.late_ms);
	jsonw_object_end(w);
}

const struct signal_kind lock_kind = {
	.id = SIGNAL_LOCK,
	.is_auto = is_auto,
	.create = create_lock,
	.destroy = destroy_lock,
	.attach = attach_lock,
	.end = end_lock,
	.write = write_lock,
};
