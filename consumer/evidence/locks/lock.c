/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signal `lock`: the locks that the session's threads waited for, how often and how long, and
 * the wakers that ended long waits; and each long wait of any kind. The broker attaches two
 * programs for the session: the time accounts (bpf/time/account.bpf.c), which know since when a
 * thread waits, and one at each wake-up (bpf/locks/lock.bpf.c).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "consumer/evidence/locks/lock_stacks.h"
#include "consumer/evidence/locks/lock_waits.h"
#include "consumer/evidence/locks/long_wait_table.h"
#include "consumer/evidence/locks/long_waits.h"
#include "consumer/evidence/time/accounts_hold.h"
#include "consumer/io/turn.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/process/process.h"
#include "consumer/process/process_mappings.h"
#include "consumer/signals/counter_signal.h"
#include "consumer/signals/signal_programs.h"
#include "consumer/signals/signal_target.h"
#include "consumer/signals/signals.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

struct lock {
	struct signal signal;
	struct accounts_hold hold;
	struct lock_baseline before;	    /* owned */
	struct lock_waits waits;	    /* owned */
	struct signal_stacks taken;	    /* of the waking threads */
	struct lock_stacks stacks;	    /* which stack belongs to which lock */
	uint64_t filtered;		    /* stacks of other processes */
	struct long_waits_reading *reading; /* owned; NULL: not begun, or finished */
	struct long_waits long_waits;	    /* owned */
};

static const char unreadable[] = "the waits for locks cannot be read";

static const char unlisted[] = "the long waits, or the accounts of their threads, cannot be read";

static const char no_expectation[] = "a stack is taken where a long wait ends";

static struct lock *lock_of(struct signal *s)
{
	return (struct lock *)s;
}

static struct signal *create_lock(const struct signal_host *host,
				  const struct signal_target *target)
{
	struct lock *s = counter_signal_new(sizeof(*s), accounts_hold_reason(host));

	if (!s)
		return NULL;
	stack_table_init(&s->taken.stacks, host->stacks);
	wait_objects_init(&s->taken.objects);
	lock_stacks_init(&s->stacks);
	s->taken.expected = UINT64_MAX;
	s->taken.expected_why = no_expectation;
	return &s->signal;
}

static void destroy_lock(struct signal *signal)
{
	struct lock *s = lock_of(signal);

	lock_maps_forget(&s->before);
	lock_waits_done(&s->waits);
	lock_stacks_done(&s->stacks);
	long_waits_close(s->reading);
	long_waits_done(&s->long_waits);
	stack_table_done(&s->taken.stacks);
	wait_objects_done(&s->taken.objects);
	free(s);
}

/* Releases the programs, the wake-up program first: it reads the accounts. */
static void drop_programs(struct lock *s, const struct signal_host *host, bool of_waits)
{
	if (of_waits)
		signal_programs_drop(host->programs, SIGNAL_LOCK);
	accounts_hold_leave(&s->hold, host);
	s->signal.held = false;
}

/*
 * Attaches the program of the accounts, which also enters the threads that already wait, and then
 * the wake-up program. Leftovers of a killed consumer are removed first.
 */
static void attach_lock(struct signal *signal, const struct signal_host *host,
			const struct signal_target *target)
{
	struct lock *s = lock_of(signal);

	if (!accounts_hold_attach(&s->hold, signal, host, target))
		return;
	if (!host->programs->of[SIGNAL_LOCK].holders) {
		lock_maps_sweep(host->pins, true);
		long_wait_table_empty(host->pins);
	}
	if (signal_programs_hold(host->programs, SIGNAL_LOCK, &signal->off_reason) < 0) {
		drop_programs(s, host, false);
		return;
	}
	signal->held = true;
	if (lock_waits_begin(host->pins, target->slot, &s->before) < 0) {
		drop_programs(s, host, true);
		signal->off_reason = unreadable;
		return;
	}
	signal->taken = &s->taken;
}

/* Takes the stack of a thread that woke one of the session's. */
static bool take_sample(struct signal *signal, const struct signal_target *target,
			const struct stack_sample *h, const struct process *p)
{
	struct lock *s = lock_of(signal);
	struct ledger *ledger = &s->taken.phase[PHASE_DURING];
	struct module *exe;
	struct stack *stack;

	if (!(h->flags & SAMPLE_WAKER) || !signal->taken)
		return false;
	if (signal_target_judge(target, h) != BELONGS) {
		s->filtered++;
		return true;
	}
	exe = p ? process_mappings_at(p, h->time_ns, h->image)->exe : NULL;
	if (stack_table_put(&s->taken.stacks, h, PHASE_DURING, h->weight_ns, exe, &stack) < 0) {
		ledger->lost[DROP_MAP_FULL]++;
		return true;
	}
	ledger->emitted++;
	lock_stacks_add(&s->stacks, h, stack->number);
	return true;
}

/* Reads the accounts first: a wait that had ended when they were read is then in the table. */
static bool prepare_lock(struct signal *signal, const struct signal_host *host,
			 const struct signal_target *target)
{
	struct lock *s = lock_of(signal);

	if (!signal->held || (target->shared && !target->only_tgid))
		return true;
	if (!accounts_hold_prepare(&s->hold, host, target))
		return false;
	if (!s->reading)
		s->reading = long_waits_open();
	return !s->reading ||
	       long_waits_step(s->reading, host->pins, target->slot, turn_until_ns()) <= 0;
}

/* Takes the long waits. They need the accounts of their threads and the open waits for locks. */
static void end_long_waits(struct lock *s, const struct signal_host *host,
			   const struct signal_target *target)
{
	const struct thread_accounts *accounts =
		accounts_hold_end(&s->hold, &s->signal, host, target);
	struct long_waits_source source = { .pins = host->pins,
					    .slot = target->slot,
					    .start_ns = target->start_ns,
					    .accounts = accounts,
					    .locks = s->waits.open,
					    .n_locks = s->waits.n_open,
					    .lost = s->waits.lost,
					    .budget = host->stacks };

	if (!s->reading)
		s->reading = long_waits_open();
	if (accounts && s->reading &&
	    long_waits_take(TAKE_PTR(s->reading), &source, &s->long_waits) == 0)
		s->waits.long_waits = &s->long_waits;
}

static void end_lock(struct signal *signal, const struct signal_host *host,
		     const struct signal_target *target)
{
	struct lock *s = lock_of(signal);

	if (!signal->held)
		return;
	s->hold.shared = target->shared && !target->only_tgid;
	if (!s->hold.shared &&
	    lock_waits_end(host->pins, target->slot, target->only_tgid, &s->before, &s->waits) == 0)
		signal->evidence = &s->waits;
	else if (!s->hold.shared)
		signal->off_reason = unreadable;
	if (signal->evidence)
		end_long_waits(s, host, target);
	drop_programs(s, host, true);
	lock_maps_forget(&s->before);
	lock_maps_sweep(host->pins, false);
	long_wait_table_sweep_begin(host->long_waits);
}

static bool is_settled(const struct signal *signal)
{
	const struct lock *s = (const struct lock *)signal;
	const struct ledger *here = &s->taken.phase[PHASE_DURING], *there = &s->waits.stacks;

	return here->emitted + ledger_lost(here) + s->filtered + ledger_lost(there) >=
	       there->attempted;
}

/*
 * Whether a lock may be a variable of a module: a module's data are mapped as FILE and ANONYMOUS.
 */
static bool may_be_variable(const struct lock_memory *memory)
{
	return memory->kind != LOCK_MEMORY_HEAP && memory->kind != LOCK_MEMORY_STACK &&
	       memory->kind != LOCK_MEMORY_SHARED;
}

/* Finds the module with the next code below the address of the lock. */
static void find_place(const struct signal_host *host, struct lock_waited *lock)
{
	const struct process *p =
		lock->lock.address && host->processes && may_be_variable(&lock->memory)
			? process_find(host->processes, lock->lock.tgid, lock->start_ns)
			: NULL;

	for (size_t i = p ? p->maps.count : 0; i-- > 0;) {
		const struct mapping *m = &p->maps.items[i];

		if (m->start > lock->lock.address || !m->module || m->module->path[0] != '/')
			continue;
		lock->place = (struct lock_place){ m->module, m->start, m->file_offset };
		return;
	}
}

/* Closes the ledger of the stacks, and finds the heaviest stack of each reported waker. */
static void close_lock(struct signal *signal, const struct signal_host *host,
		       const struct signal_target *target)
{
	struct lock *s = lock_of(signal);
	struct ledger *during = &s->taken.phase[PHASE_DURING];
	uint64_t lost[SLOT_LOST_REASONS] = {};

	during->attempted = s->waits.stacks.attempted - MIN(s->waits.stacks.attempted, s->filtered);
	during->attempted = MAX(during->attempted, during->emitted + ledger_lost(during));
	for (int i = 0; i < SLOT_LOST_REASONS; i++)
		lost[i] = s->waits.stacks.lost[i];
	ledger_close(during, lost);
	for (size_t i = 0; i < s->waits.count; i++)
		lock_stacks_find(&s->stacks, &s->waits.items[i]);
	for (size_t i = 0; i < s->waits.count; i++)
		find_place(host, &s->waits.items[i]);
	signal_target_name_cgroups(&s->taken.stacks, host, target);
}

/* Writes the sums over all locks; the lines of the locks have the details. */
static void write_sums(const struct lock_waits *waits, struct jsonw *w)
{
	jsonw_u64(w, "locks", waits->all.locks);
	jsonw_u64(w, "waits", waits->all.waits);
	jsonw_u64(w, "waited_ms", waits->all.total_ns / NSEC_PER_MSEC);
	jsonw_u64(w, "open", waits->all.open);
	jsonw_u64(w, "open_ms", waits->all.open_ns / NSEC_PER_MSEC);
	jsonw_u64(w, "longest_ms", waits->all.longest_ns / NSEC_PER_MSEC);
	jsonw_u64_nonzero(w, "wakers_left_out", waits->wakers_lost);
}

/* Writes how many waits of any kind were long; the lines of the chains have the awaited threads. */
static void write_long_waits(const struct long_waits *waits, struct jsonw *w)
{
	uint64_t ns = 0;

	if (!counter_signal_write_begin("long_waits", waits, unlisted, w))
		return;
	for (size_t i = 0; i < waits->count; i++)
		ns += waits->items[i].end_ns - waits->items[i].begin_ns;
	jsonw_u64(w, "waits", waits->count);
	jsonw_u64(w, "waited_ms", ns / NSEC_PER_MSEC);
	jsonw_u64(w, "threads", waits->n_threads);
	if (waits->lost_ns)
		jsonw_u64(w, "lost_ms", waits->lost_ns / NSEC_PER_MSEC);
	jsonw_object_end(w);
}

static void write_lock(const struct signal *signal, struct jsonw *w)
{
	const struct lock *s = (const struct lock *)signal;
	const struct lock_waits *waits = signal->evidence;

	if (!accounts_hold_write_begin(&s->hold, signal, "locks", w))
		return;
	write_sums(waits, w);
	jsonw_u64_nonzero(w, "late_ms", signal->late_ms);
	write_long_waits(waits->long_waits, w);
	jsonw_object_end(w);
}

/*
 * Writes the ledger of the waits, and next to it the ledger of the wakers' stacks and the ledger of
 * long waits of any kind.
 */
static void write_ledger(const struct signal *signal, struct jsonw *w)
{
	const struct lock_waits *waits = signal->evidence;

	ledger_write(&waits->ledger, w);
	if (signal->taken) {
		jsonw_object(w, "wakers");
		ledger_write(&signal->taken->phase[PHASE_DURING], w);
		jsonw_object_end(w);
	}
	if (waits->long_waits) {
		jsonw_object(w, "long_waits");
		ledger_write(&waits->long_waits->ledger, w);
		jsonw_object_end(w);
	}
}

static bool lacks_long_waits(const struct long_waits *waits, char reason[LEDGER_REASON_BYTES])
{
	const struct ledger *l = &waits->ledger;

	if (!ledger_lost(l))
		return false;
	if (ledger_say_unrecorded(l, "long waits", reason))
		return true;
	snprintf(reason, LEDGER_REASON_BYTES,
		 "%" PRIu64 " of %" PRIu64 " long waits are in no wait chain: %s",
		 ledger_lost_to_full(l), l->attempted,
		 l->lost[DROP_LONG_WAITS_FULL]
			 ? "the table of long waits was full (trocar-loader load --long-waits)"
			 : "sessions use all the memory that they may");
	return true;
}

static bool lacks_waits(const struct signal *signal, char reason[LEDGER_REASON_BYTES])
{
	const struct lock_waits *waits = signal->evidence;
	const struct ledger *stacks;

	if (!waits)
		return false;
	if (ledger_say_unrecorded(&waits->ledger, "lock waits", reason))
		return true;
	if (ledger_lost(&waits->ledger)) {
		snprintf(reason, LEDGER_REASON_BYTES,
			 "%" PRIu64 " of %" PRIu64 " lock waits were not recorded: the table of "
			 "locks was full (trocar-loader load --locks)",
			 ledger_lost_to_full(&waits->ledger), waits->ledger.attempted);
		return true;
	}
	if (waits->long_waits && lacks_long_waits(waits->long_waits, reason))
		return true;
	stacks = signal->taken ? &signal->taken->phase[PHASE_DURING] : NULL;
	if (!stacks || !ledger_lost(stacks))
		return false;
	snprintf(reason, LEDGER_REASON_BYTES,
		 "%" PRIu64 " of %" PRIu64 " stacks of threads that ended lock waits are lost",
		 ledger_lost(stacks), stacks->attempted);
	return true;
}

const struct signal_kind lock_kind = {
	.id = SIGNAL_LOCK,
	.stacks_of = STACKS_WAKING,
	/* For a session that is to explain a stall: the kernel counts no locks as pressure. */
	.is_auto = trigger_reason_asks_why,
	.create = create_lock,
	.destroy = destroy_lock,
	.attach = attach_lock,
	.sample = take_sample,
	.prepare = prepare_lock,
	.end = end_lock,
	.is_settled = is_settled,
	.close = close_lock,
	.write = write_lock,
	.write_ledger = write_ledger,
	.lacks = lacks_waits,
};
