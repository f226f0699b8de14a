/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/agent/agent.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "consumer/discovery/match_queue.h"
#include "consumer/discovery/process_events.h"
#include "consumer/discovery/process_scan.h"
#include "consumer/discovery/rules_apply.h"
#include "consumer/evidence/time/accounts_hold.h"
#include "consumer/io/turn.h"
#include "consumer/kernel/map_batch.h"
#include "consumer/telemetry/agent_events.h"
#include "consumer/telemetry/kernel_errors.h"
#include "consumer/watch/binding.h"
#include "consumer/watch/watch_tree.h"
#include "shared/tools/clock.h"
#include "shared/tools/log.h"
#include "shared/tools/memory.h"

/*
 * The BPF programs go idle when no consumer has drained for this long: three drains may be late or
 * missing.
 */
#define STALE_NS (20 * NSEC_PER_SEC)

/* How long an ended session waits for samples that a drain left in the ring. */
#define SETTLE_MORE_NS (2 * NSEC_PER_SEC)

/* A stopping agent drains the rest at most this often. */
#define LAST_DRAINS 100

/* No rule requests more than 30 s before a trigger. */
#define RECORDER_KEEP_NS (31 * NSEC_PER_SEC)

/* Least time between two searches for unused modules. */
#define FORGET_EVERY_NS (2 * NSEC_PER_SEC)

static void end_ousted(struct agent *a, const char *why)
{
	if (!a->ousted)
		log_error("%s: %s: ending", a->options.bpf_dir, why);
	a->ousted = true;
	loop_stop(a->loop);
}

/*
 * Returns whether the maps still belong to this consumer. Two consumers on one set of maps would
 * each see half of the records: the older one ends. A consumer with maps that the kernel side no
 * longer fills would see nothing.
 */
static bool owns_maps(struct agent *a, bool moved)
{
	if (__atomic_load_n(&a->pins.control->owner, __ATOMIC_ACQUIRE) != a->owner)
		end_ousted(a, "another consumer has taken over");
	else if (!pins_watch_stands(&a->pins_watch, moved))
		end_ousted(a, "the kernel side was replaced or unloaded; start the consumer again "
			      "once it is loaded");
	return !a->ousted;
}

/*
 * The output is a pipe without a reader, or the stopped journal: a service manager restarts us with
 * a new one.
 */
static void on_output_ended(void *context, uint32_t events)
{
	struct agent *a = context;

	log_error("standard output: its reader has ended: stopping");
	a->stop_reason = "output";
	loop_remove(a->output_source);
	a->output_source = NULL;
	loop_stop(a->loop);
}

static void on_pins_moved(void *context, uint32_t events)
{
	owns_maps(context, true);
}

/*
 * Frees modules that no mapping has used for so long that no sample of theirs can be in the
 * recorder, or in a session that runs or waits to be written: the oldest sample of a session is
 * RECORDER_KEEP_NS older than its start. So months of new programs use no more memory.
 */
static void forget_modules(struct agent *a, uint64_t now_ns)
{
	uint64_t oldest_ns = MIN(now_ns, sessions_oldest_ns(&a->sessions));

	if (now_ns - a->forgot_ns < FORGET_EVERY_NS)
		return;
	a->forgot_ns = now_ns;
	oldest_ns = MIN(oldest_ns, report_thread_oldest_ns(a->reporter));
	if (oldest_ns > RECORDER_KEEP_NS &&
	    process_unwind_forget(&a->unwind, oldest_ns - RECORDER_KEEP_NS))
		report_thread_wake(a->reporter);
}

/* Whether this loop iteration left records in a ring, or processes in a queue. */
static bool has_rest(const struct agent *a)
{
	return a->pins.samples.cut || a->pins.events.cut || a->pins.errors.cut ||
	       a->discovery.matches.first || mappings_queue_has_rest(&a->queue) ||
	       process_scan_runs(&a->discovery) || path_wait_has_rest(&a->discovery) ||
	       process_unwind_has_rest(&a->unwind) || looks_has_rest(&a->looks) ||
	       sessions_preparing(&a->sessions) || accounts_hold_has_rest(&a->sessions.host) ||
	       a->long_waits.elements || socket_passes_has_rest(&a->sockets) ||
	       other_ends_has_rest(&a->other_ends);
}

static void continue_scan(struct agent *a)
{
	int r = process_scan_step(&a->discovery);

	if (r < 0)
		log_warning("scan of the processes: %s, continuing with events alone",
			    strerror(-r));
}

static void expire_recorders(struct agent *a, uint64_t now_ns)
{
	uint64_t before_ns = now_ns > RECORDER_KEEP_NS ? now_ns - RECORDER_KEEP_NS : 0;

	recorder_expire(&a->recorder, before_ns);
	wait_recorder_expire(&a->waits, before_ns);
	/*
	 * When nothing is watched there are no more drains. A session refers to objects that it
	 * still holds.
	 */
	if (!a->watches.count && !a->sessions.count && wait_recorder_bytes(&a->waits))
		wait_recorder_done(&a->waits);
}

void agent_drain(struct agent *a)
{
	uint64_t now_ns = clock_mono_ns();

	if (!owns_maps(a, false))
		return;
	if (a->drained_turn == loop_turn(a->loop) && has_rest(a))
		return;
	a->drained_turn = loop_turn(a->loop);

	a->pins.control->heartbeat_ns = now_ns;
	health_fill(&a->health);
	/* Drain samples first: an exit event below may end a process that they need. */
	drain_samples(&a->drain);
	process_events_drain(&a->discovery);
	path_wait_step(&a->discovery);
	match_queue_step(&a->discovery);
	continue_scan(a);
	kernel_errors_drain(&a->kernel_errors);
	if (sessions_end_due(&a->sessions, now_ns) && !a->pins.samples.cut)
		drain_samples(&a->drain);
	accounts_hold_step(&a->sessions.host);
	long_wait_table_sweep_step(&a->long_waits, &a->pins, turn_until_ns());
	if (a->watches.count)
		looks_record(&a->looks);
	looks_step(&a->looks);
	socket_passes_step(&a->sockets, turn_until_ns());
	other_ends_step(&a->other_ends, turn_until_ns());
	/* Samples that still wait in the ring are no loss yet. */
	triggers_step(&a->triggers, a->pins.samples.cut ? now_ns - SETTLE_MORE_NS : now_ns);
	watches_note_counters(&a->watches);
	sessions_read_facts(&a->sessions, now_ns);
	watch_facts_step(&a->watches, now_ns);
	pressure_follow_drained(&a->pressure, now_ns);
	losses_check(&a->losses);
	health_check(&a->health, now_ns);
	sampler_retry(&a->sampler);
	expire_recorders(a, now_ns);
	processes_sweep(&a->processes, now_ns);
	forget_modules(a, now_ns);
	if (has_rest(a))
		schedule_drain_soon(&a->schedule);
}

static void on_scan_due(void *context)
{
	struct agent *a = context;

	if (a->ousted)
		return;
	sampler_look(&a->sampler);
	process_scan_ask(&a->discovery);
	continue_scan(a);
	if (!a->watches.count) {
		memory_give_back();
		output_queue_give_back(a->output);
	}
}

static void on_drain_due(void *context)
{
	agent_drain(context);
}

static void on_settled(void *context)
{
	struct agent *a = context;

	if (process_unwind_settle(&a->unwind))
		schedule_settle_soon(&a->schedule);
	if (mappings_queue_has_rest(&a->queue))
		schedule_drain_soon(&a->schedule);
}

static const struct schedule_calls schedule_calls = {
	.drain = on_drain_due,
	.settle = on_settled,
	.scan = on_scan_due,
};

static void look_at_rules(struct agent *a, bool asked)
{
	uint64_t again_ms;

	if (rules_file_changed(&a->rules_file, asked, &again_ms) &&
	    rules_apply_file(&a->discovery) < 0)
		log_error("%s: not applied, the running rules stay", a->options.rules);
	if (again_ms && a->options.rules_watch)
		loop_timer_set(a->rules_timer, again_ms * NSEC_PER_MSEC, 0);
}

static void on_signal(void *context, uint32_t events)
{
	struct agent *a = context;
	struct signalfd_siginfo info;

	while (read(a->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGHUP) {
			output_queue_reopen(a->output);
			look_at_rules(a, true);
			continue;
		}
		a->stop_reason = info.ssi_signo == SIGINT ? "SIGINT" : "SIGTERM";
		loop_stop(a->loop);
	}
}

static void on_rules_file(void *context, uint32_t events)
{
	look_at_rules(context, false);
}

static void on_rules_timer(void *context, uint32_t events)
{
	look_at_rules(context, true);
}

/*
 * Takes over the maps: removes an earlier consumer's watches and targets, and empties its tries.
 * *gap has its open sessions, for agent.start.
 */
static int take_over(struct agent *a, struct agent_gap *gap)
{
	struct control *c = a->pins.control;
	uint64_t heart_ns = __atomic_load_n(&c->heartbeat_ns, __ATOMIC_RELAXED),
		 now_ns = clock_mono_ns();
	int r;

	/*
	 * In whole milliseconds and never 0: the earlier consumer may be alive when it is taken
	 * over.
	 */
	if (c->armed && heart_ns)
		gap->gap_ms = 1 + (now_ns - MIN(now_ns, heart_ns)) / NSEC_PER_MSEC;
	gap->lost_lines = c->lost_lines;
	gap->lost_bytes = c->lost_bytes;
	gap->lost_sessions = c->lost_sessions;
	c->lost_lines = c->lost_bytes = c->lost_sessions = 0;
	for (uint32_t i = 0; i < a->pins.abi.slots; i++) {
		struct slot *slot = &a->pins.slots[i];

		if (slot->session && gap->n_cut < SESSIONS_MAX)
			gap->cut[gap->n_cut++] = slot->session;
		slot->session = 0;
		slot->looked = 0;
		__atomic_store_n(&slot->state, SLOT_IDLE, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&c->armed, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&c->sessions, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&c->sockets, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&c->events_on, 0, __ATOMIC_RELEASE);
	r = watch_tree_clear(&a->pins);
	if (r < 0)
		return r;
	mappings_walk_clear(&a->pins);
	r = map_batch_clear(a->pins.targets_fd, sizeof(struct process_key));
	if (r == 0)
		r = ruleset_clear(&a->pins, 0);
	if (r == 0)
		r = ruleset_clear(&a->pins, 1);
	/*
	 * Set it last: this word identifies the owner of the maps. A consumer that still runs sees
	 * it and ends.
	 */
	a->owner = (uint32_t)(clock_mono_ns() >> 10) | 1;
	__atomic_store_n(&c->owner, a->owner, __ATOMIC_RELEASE);
	c->stale_ns = STALE_NS;
	c->heartbeat_ns = clock_mono_ns();
	c->wake_bytes = (uint32_t)(a->pins.samples.size / 2);
	c->vma_tgid = 0;
	c->vma_from = 0;
	a->active.generation = c->generation;
	return r;
}

/* Sends the text of `systemctl status`. Waits at most SERVICE_NOTIFY_WAIT_MS. */
static int notify_state(struct agent *a, const char *state)
{
	return service_notify_say(&a->notify, state, "%zu rules, %u watches, %zu sessions running",
				  a->active.set->rules->count, a->watches.count,
				  (size_t)a->sessions.count);
}

/*
 * A message that the service manager did not accept is sent again after this time; otherwise the
 * timer fires at half of the watchdog's time.
 */
#define NOTIFY_AGAIN_NS NSEC_PER_SEC

static void on_notify(void *context, uint32_t events)
{
	struct agent *a = context;
	bool first = !a->notified;
	int r = notify_state(a, first ? "READY=1" : "WATCHDOG=1");

	a->notified = a->notified || r == 0;
	if (first || r < 0)
		loop_timer_set(a->notify_timer, r < 0 ? NOTIFY_AGAIN_NS : a->notify.watchdog_ns / 2,
			       a->notify.watchdog_ns / 2);
}

/* Repeats the requests that the broker could not take because it was late; it is available now. */
static void on_broker(void *context)
{
	struct agent *a = context;

	sampler_again(&a->sampler);
	pressure_follow_retry(&a->pressure);
	sessions_attach_again(&a->sessions);
}

static int add_sources(struct agent *a)
{
	int r;

	r = schedule_init(&a->schedule, a->loop, &schedule_calls, a);
	if (r < 0)
		return r;
	r = loop_timer(a->loop, on_notify, a, &a->notify_timer);
	if (r < 0)
		return r;
	r = event_budget_listen(&a->budget, a->loop);
	if (r < 0)
		return r;
	r = bindings_listen(&a->watches, a->loop);
	if (r < 0)
		return r;
	r = watch_tree_listen(&a->watches, a->loop);
	if (r < 0)
		return r;
	r = cooldowns_listen(&a->triggers.cooldowns, a->loop);
	if (r < 0)
		return r;
	r = loop_add(a->loop, a->signal_fd, EPOLLIN, on_signal, a, &a->signal_source);
	if (r < 0)
		return r;
	r = loop_timer(a->loop, on_rules_timer, a, &a->rules_timer);
	if (r < 0)
		return r;
	if (a->rules_file.fd >= 0) {
		r = loop_add(a->loop, a->rules_file.fd, EPOLLIN, on_rules_file, a,
			     &a->rules_source);
		if (r < 0)
			return r;
	}
	r = loop_add(a->loop, output_queue_ended_fd(a->output), EPOLLIN, on_output_ended, a,
		     &a->output_source);
	if (r < 0)
		return r;
	if (a->pins_watch.fd >= 0) {
		r = loop_add(a->loop, a->pins_watch.fd, EPOLLIN, on_pins_moved, a, &a->pins_source);
		if (r < 0)
			return r;
	}
	r = process_unwind_listen(&a->unwind, a->loop);
	if (r < 0)
		return r;
	r = broker_client_listen(a->broker, a->loop, on_broker, a);
	if (r < 0)
		return r;
	/* Half-full samples and discovery events wake the loop; discovery events are rare. */
	return schedule_listen(&a->schedule, a->loop, a->pins.samples.fd, a->pins.events.fd);
}

/*
 * Greets the broker before anything needs it, so that agent.start reports whether it is available,
 * or the reason.
 */
static void greet_broker(struct agent *a)
{
	const char *why;

	if (*options_broker(&a->options) &&
	    broker_client_greet(a->broker, BROKER_CLIENT_GREET_MS, &why) < 0)
		log_warning("broker: %s, continuing without: %s", why,
			    a->pins.abi.cpus_sampled ? "the loader's own sampler runs all the time"
						     : "there are no stacks until it answers");
}

static void pass_over(void *context, const void *record, size_t bytes)
{
}

int agent_run(struct agent *a)
{
	struct agent_gap gap = {};
	int r;

	r = take_over(a, &gap);
	if (r < 0) {
		log_error("cannot take over the maps: %s", strerror(-r));
		return r;
	}
	r = add_sources(a);
	if (r < 0) {
		log_error("cannot set up the loop: %s", strerror(-r));
		return r;
	}
	sampler_start(&a->sampler);
	greet_broker(a);
	/* Samples that an earlier consumer left belong to its watches: discard them. */
	ring_drain(&a->pins.samples, RING_ENDLESSLY, pass_over, NULL);
	a->started = true;
	agent_events_start(&a->telemetry, &gap);
	r = rules_apply_file(&a->discovery);
	if (r < 0)
		return r;
	log_info("ready: %zu rules, %u watches", a->active.set->rules->count, a->watches.count);
	on_notify(a, 0);
	memory_give_back(); /* memory that only the start needs */
	r = loop_run(a->loop);
	return a->ousted ? -EBUSY : r;
}

/*
 * Ends this consumer's sessions and watches in the kernel's maps. Not called if another consumer
 * owns them.
 */
static void let_go(struct agent *a)
{
	if (a->active.set) {
		notify_state(a, "STOPPING=1");
		for (size_t i = 0; i < SESSIONS_MAX; i++)
			if (a->sessions.running[i])
				session_end(&a->sessions, a->sessions.running[i]);
		/* By then, BPF programs that were running have written their records. */
		usleep(60000);
		for (int i = 0; i == 0 || (has_rest(a) && i < LAST_DRAINS); i++) {
			a->drained_turn = UINT64_MAX;
			agent_drain(a);
		}
		triggers_step(&a->triggers, clock_mono_ns() + NSEC_PER_SEC);
	}
	watches_done(&a->watches);
	cooldowns_done(&a->triggers.cooldowns);
	event_budget_end(&a->budget);
	if (a->pins.control) {
		__atomic_store_n(&a->pins.control->events_on, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&a->pins.control->armed, 0, __ATOMIC_RELEASE);
	}
}

void agent_stop(struct agent *a)
{
	process_scan_stop(&a->discovery);
	if (!a->ousted)
		let_go(a);
	looks_done(&a->looks);
	socket_passes_done(&a->sockets);
	other_ends_done(&a->other_ends);
	wait_recorder_done(&a->waits);
	path_wait_done(&a->discovery);
	report_thread_stop(a->reporter, 5000);
	a->reporter = NULL;
	if (a->started)
		agent_events_stop(&a->telemetry, a->stop_reason);
}
