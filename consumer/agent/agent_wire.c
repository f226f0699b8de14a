/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gives each module its collaborators, and fills in the callbacks by which a module calls modules
 * above it, which it may not include: struct watch_calls and struct drain_calls. No other file sets
 * these.
 */
#include "consumer/agent/agent.h"
#include "consumer/evidence/evidence_kinds.h"

static void on_watch_changed(void *context, struct watch *w)
{
	struct agent *a = context;

	pressure_follow_changed(&a->pressure, w);
}

/* Called after on_watch_changed, because watch.start reports how pressure is followed. */
static void on_watch_started(void *context, struct watch *w)
{
	struct agent *a = context;

	watch_events_start(&a->watch_events, w);
}

static void on_watch_stopped(void *context, struct watch *w, const char *reason)
{
	struct agent *a = context;

	health_take(&a->health, w);
	watch_events_stop(&a->watch_events, w, reason);
	pressure_follow_stopped(&a->pressure, w);
}

static const struct watch_calls watch_calls = {
	.changed = on_watch_changed,
	.started = on_watch_started,
	.stopped = on_watch_stopped,
};

static void wire_sessions(struct agent *a)
{
	const struct signal_host host = {
		.kinds = evidence_kinds,
		.pins = &a->pins,
		.sampler = &a->sampler,
		.programs = &a->programs,
		.accounts = &a->accounts,
		.long_waits = &a->long_waits,
		.recorder = &a->recorder,
		.cgroups = &a->cgroups,
		.processes = &a->processes,
		.looks = &a->looks,
		.waits = &a->waits,
		.sockets = &a->sockets,
		.other_ends = &a->other_ends,
	};

	sessions_init(&a->sessions, &host, &a->sampler, &a->active);
	a->sessions.facts = &a->facts;
	a->facts.of_root = watch_facts_of_root;
	a->facts.context = &a->watches;
	a->triggers = (struct triggers){
		.log = &a->log,
		.schedule = &a->schedule,
		.sessions = &a->sessions,
		.watches = &a->watches,
		.shares = &a->shares,
		.reporter = a->reporter,
		.targets = &a->targets,
	};
	cooldowns_init(&a->triggers.cooldowns, &a->log);
}

static void wire_watches(struct agent *a)
{
	a->watches = (struct watches){
		.pins = &a->pins,
		.log = &a->log,
		.sampler = &a->sampler,
		.schedule = &a->schedule,
		.scope = &a->scope,
		.shares = &a->shares,
		.sessions = &a->sessions,
		.processes = &a->processes,
		.facts = &a->facts,
		.calls = &watch_calls,
		.context = a,
	};
	pressure_follow_init(&a->pressure, &a->log, &a->triggers);
	a->pressure.waits = a->pins.looks_path ? &a->waits : NULL;
	a->watch_events = (struct watch_events){ &a->budget, &a->pressure };
}

static void wire_telemetry(struct agent *a)
{
	a->telemetry = (struct telemetry){
		.loop = a->loop,
		.host = &a->host,
		.self = &a->self,
		.pins = &a->pins,
		.log = &a->log,
		.budget = &a->budget,
		.output = a->output,
		.counts = &a->counts,
		.processes = &a->processes,
		.symbols = a->symbols,
		.recorder = &a->recorder,
		.looks = &a->looks,
		.waits = &a->waits,
		.sampler = &a->sampler,
		.sessions = &a->sessions,
		.reporter = a->reporter,
		.triggers = &a->triggers,
		.watches = &a->watches,
		.pressure = &a->pressure,
		.scope = &a->scope,
		.broker = a->broker,
		.start_ns = a->start_ns,
	};
	health_init(&a->health, &a->telemetry, a->options.health_seconds);
	a->losses = (struct losses){ .telemetry = &a->telemetry,
				     .schedule = &a->schedule,
				     .output = output_queue_name(a->output) };
	a->kernel_errors =
		(struct kernel_errors){ &a->pins, &a->log, &a->watches, &a->schedule, &a->counts };
	a->unseen = (struct cgroups_unseen){ .cgroups = &a->cgroups, .lines = &a->lines };
}

static struct drain_slot slot_of(void *context, uint32_t slot)
{
	const struct agent *a = context;
	const struct watch *w = a->watches.by_slot[slot];

	return w ? (struct drain_slot){ w->cgroup_id, w->epoch } : (struct drain_slot){ 0 };
}

static bool give_session(void *context, const struct stack_sample *sample, const struct process *p)
{
	const struct agent *a = context;
	struct session *s = sessions_of_slot(&a->sessions, sample->slot, sample->epoch);

	return s && session_sample(s, sample, p);
}

/* Looks up the path of the cgroup while it exists, for the lines of a session. */
static void meet_below(void *context, uint64_t cgroup_id, uint32_t tgid)
{
	struct agent *a = context;

	cgroups_path(&a->cgroups, cgroup_id, tgid);
}

static const struct drain_calls drain_calls = {
	.slot = slot_of,
	.session = give_session,
	.below = meet_below,
};

/*
 * Passes a waiting thread to the recorder, and to the sessions of its slot and of the slots above.
 */
static void give_look(void *context, uint32_t slot, const struct look_pass *pass,
		      const struct look_seen *seen)
{
	struct agent *a = context;

	wait_recorder_seen(&a->waits, pass, seen);
	for (int i = 0; i < WATCHES_NESTED && slot < a->pins.abi.slots; i++) {
		const struct slot *at = &a->pins.slots[slot];
		struct session *s = sessions_of_slot(&a->sessions, slot, at->epoch);

		if (s)
			session_look(s, pass, seen);
		slot = at->outer - 1;
	}
}

static void end_looks(void *context, const struct look_pass *pass)
{
	struct agent *a = context;

	sessions_passed(&a->sessions, pass);
	if (wait_recorder_passed(&a->waits, pass))
		looks_forget(&a->looks);
}

static const struct looks_calls looks_calls = {
	.seen = give_look,
	.passed = end_looks,
};

static void wire_processes(struct agent *a)
{
	const struct process_unwind_needs needs = {
		.pins = &a->pins,
		.processes = &a->processes,
		.targets = &a->targets,
		.reread = &a->reread,
		.symbols = a->symbols,
		.shares = &a->shares,
		.cgroups = &a->cgroups,
		.captured = &a->sessions.captured,
		.log = &a->log,
		.budget = &a->budget,
		.schedule = &a->schedule,
	};

	process_targets_init(&a->targets, a->pins.targets_fd, &a->active);
	process_mappings_init(&a->mappings, &a->pins, &a->processes, &a->targets, a->symbols);
	mappings_queue_init(&a->queue, &a->processes, &a->mappings);
	mappings_reread_init(&a->reread, &a->processes, &a->mappings, &a->queue);
	process_unwind_init(&a->unwind, &needs);
	a->drain = (struct drain){
		.pins = &a->pins,
		.processes = &a->processes,
		.mappings = &a->mappings,
		.queue = &a->queue,
		.unwind = &a->unwind,
		.symbols = a->symbols,
		.recorder = &a->recorder,
		.active = &a->active,
		.cgroups = &a->cgroups,
		.calls = &drain_calls,
		.context = a,
		.counts = &a->counts,
	};
	looks_init(&a->looks, &a->pins, &a->drain, a->options.looks_permille, &looks_calls, a);
	socket_passes_init(&a->sockets, &a->pins);
	other_ends_init(&a->other_ends, &a->pins);
	wait_recorder_init(&a->waits, WAIT_RECORDER_BYTES);
}

static void wire_discovery(struct agent *a)
{
	a->discovery = (struct discovery){
		.pins = &a->pins,
		.log = &a->log,
		.budget = &a->budget,
		.active = &a->active,
		.cgroups = &a->cgroups,
		.unseen = &a->unseen,
		.counts = &a->counts,
		.processes = &a->processes,
		.targets = &a->targets,
		.mappings = &a->mappings,
		.queue = &a->queue,
		.unwind = &a->unwind,
		.watches = &a->watches,
		.triggers = &a->triggers,
		.pressure = &a->pressure,
		.schedule = &a->schedule,
		.shares = &a->shares,
		.scope = &a->scope,
		.rules_path = a->options.rules,
	};
	a->methods = (struct methods){
		.t = &a->telemetry,
		.d = &a->discovery,
		.watch_events = &a->watch_events,
		.subscriptions = a->subscriptions,
		.kept = a->kept,
		.control = a->control,
		.symbols = a->symbols,
		.files = a->files,
	};
}

void agent_wire(struct agent *a)
{
	a->log = (struct event_log){ .lines = &a->lines,
				     .cgroups = &a->cgroups,
				     .active = &a->active };
	event_budget_init(&a->budget, &a->log, a->options.lines_per_minute);
	wire_processes(a);
	sampler_init(&a->sampler, &a->pins, a->loop, a->broker, &a->lines);
	signal_programs_init(&a->programs, a->broker);
	wire_sessions(a);
	wire_watches(a);
	wire_telemetry(a);
	wire_discovery(a);
}
