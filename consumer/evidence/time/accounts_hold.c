/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/time/accounts_hold.h"

#include <stdlib.h>

#include "consumer/io/turn.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/signals/counter_signal.h"
#include "consumer/signals/signal_programs.h"
#include "shared/tools/cleanup.h"

static const char unreadable[] = "the accounts of threads cannot be read";
static const char no_times[] =
	"this kernel keeps no times of threads: it was built without CONFIG_SCHEDSTATS and "
	"CONFIG_TASK_DELAY_ACCT";
static const char others[] =
	"the kernel side keeps accounts by cgroup, and more of the cgroup was sampled than this "
	"session's processes";

/*
 * State that the signals of one session share. It is in the list of signal_programs while attached.
 */
struct accounts_held {
	struct accounts_held *next;
	const struct signal_target *target; /* its session; borrowed */
	unsigned int holders;
	bool ended;
	int error;			/* of the reading at the end */
	struct thread_entry *entry;	/* owned; NULL: all threads are entered */
	struct thread_reading *reading; /* owned; NULL: not begun, or finished */
	struct thread_baseline before;
	struct thread_accounts accounts;
};

const char *accounts_hold_reason(const struct signal_host *host)
{
	return host->pins->abi.sched_info ? NULL : no_times;
}

static struct accounts_held *find_held(const struct account_holds *all,
				       const struct signal_target *target)
{
	struct accounts_held *held = all->first;

	while (held && held->target != target)
		held = held->next;
	return held;
}

/* Enters threads until `until_ns`. Returns 1 if there are more, 0, or -errno. */
static int enter_threads(struct accounts_held *held, uint64_t until_ns)
{
	int more = held->error;

	if (!held->entry || more < 0)
		return more;
	more = thread_accounts_enter_step(held->entry, until_ns);
	if (more == 0)
		more = thread_accounts_entered(TAKE_PTR(held->entry), &held->before);
	if (more < 0) {
		held->error = more;
		thread_accounts_leave(TAKE_PTR(held->entry));
	}
	return more;
}

void accounts_hold_done_all(struct account_holds *all)
{
	account_table_sweep_stop(&all->sweep);
}

void accounts_hold_step(const struct signal_host *host)
{
	for (struct accounts_held *held = host->accounts->first; held; held = held->next)
		enter_threads(held, turn_until_ns());
	account_table_sweep_step(&host->accounts->sweep, host->pins, turn_until_ns());
}

void accounts_hold_settle(const struct signal_host *host)
{
	account_table_sweep_step(&host->accounts->sweep, host->pins, UINT64_MAX);
}

bool accounts_hold_has_rest(const struct signal_host *host)
{
	const struct accounts_held *held = host->accounts->first;

	while (held && !held->entry)
		held = held->next;
	return held || host->accounts->sweep.elements;
}

/*
 * Attaches the program for one more session and reads. On failure returns NULL and sets *ret_why.
 */
static struct accounts_held *attach_program(const struct signal_host *host,
					    const struct signal_target *target,
					    const char **ret_why)
{
	struct accounts_held *held = calloc(1, sizeof(*held));

	*ret_why = unreadable;
	if (!held)
		return NULL;
	if (!host->programs->of[SIGNAL_POOLS].holders)
		account_table_empty(host->pins);
	if (signal_programs_hold(host->programs, SIGNAL_POOLS, ret_why) < 0) {
		free(held);
		return NULL;
	}
	if (thread_accounts_enter(host->pins, target->slot, &held->entry) < 0 ||
	    enter_threads(held, turn_until_ns()) < 0) {
		signal_programs_drop(host->programs, SIGNAL_POOLS);
		*ret_why = unreadable;
		free(held);
		return NULL;
	}
	held->target = target;
	held->next = host->accounts->first;
	host->accounts->first = held;
	return held;
}

bool accounts_hold_attach(struct accounts_hold *hold, struct signal *signal,
			  const struct signal_host *host, const struct signal_target *target)
{
	struct accounts_held *held;

	if (hold->held || target->stop_ns || !host->pins->abi.sched_info)
		return false;
	held = find_held(host->accounts, target);
	if (!held)
		held = attach_program(host, target, &signal->off_reason);
	if (!held)
		return false;
	held->holders++;
	hold->held = held;
	counter_signal_run(signal, target);
	return true;
}

bool accounts_hold_prepare(struct accounts_hold *hold, const struct signal_host *host,
			   const struct signal_target *target)
{
	struct accounts_held *held = hold->held;

	if (!held || held->ended || held->error < 0 || (target->shared && !target->only_tgid))
		return true;
	if (enter_threads(held, turn_until_ns()) > 0)
		return false;
	if (held->error == 0 && !held->reading)
		held->error = thread_accounts_open(host->pins, target->slot, target->only_tgid,
						   &held->before, &held->reading);
	if (held->error == 0)
		held->error = thread_accounts_step(held->reading, turn_until_ns());
	if (held->error <= 0)
		return true;
	held->error = 0;
	return false;
}

/* Reads the rest. */
static int read_rest(struct accounts_held *held, const struct signal_host *host,
		     const struct signal_target *target)
{
	int e = enter_threads(held, UINT64_MAX);

	if (e == 0 && !held->reading)
		e = thread_accounts_open(host->pins, target->slot, target->only_tgid, &held->before,
					 &held->reading);
	if (e < 0)
		return e;
	return thread_accounts_take(TAKE_PTR(held->reading), &held->accounts);
}

struct thread_accounts *accounts_hold_end(struct accounts_hold *hold, struct signal *signal,
					  const struct signal_host *host,
					  const struct signal_target *target)
{
	struct accounts_held *held = hold->held;

	if (!held)
		return NULL;
	hold->shared = target->shared && !target->only_tgid;
	if (hold->shared)
		return NULL;
	if (!held->ended)
		held->error = read_rest(held, host, target);
	held->ended = true;
	if (held->error < 0)
		signal->off_reason = unreadable;
	return held->error < 0 ? NULL : &held->accounts;
}

const struct thread_baseline *accounts_hold_before(const struct accounts_hold *hold)
{
	return &hold->held->before;
}

void accounts_hold_leave(struct accounts_hold *hold, const struct signal_host *host)
{
	struct accounts_held **at = &host->accounts->first, *held = hold->held;

	hold->held = NULL;
	if (!held || --held->holders)
		return;
	while (*at != held)
		at = &(*at)->next;
	*at = held->next;
	signal_programs_drop(host->programs, SIGNAL_POOLS);
	thread_accounts_leave(held->entry);
	thread_accounts_close(held->reading);
	thread_accounts_forget(&held->before);
	thread_accounts_done(&held->accounts);
	free(held);
	account_table_sweep_begin(&host->accounts->sweep);
	account_table_sweep_step(&host->accounts->sweep, host->pins, turn_until_ns());
}

bool accounts_hold_write_begin(const struct accounts_hold *hold, const struct signal *signal,
			       const char *key, struct jsonw *w)
{
	return counter_signal_write_begin(key, signal->evidence,
					  hold->shared ? others : signal->off_reason, w);
}
