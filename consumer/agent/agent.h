/* SPDX-License-Identifier: BSD-2-Clause */
/* agent.h: everything the consumer's main thread owns, in one place. */
#ifndef TROCAR_CONSUMER_AGENT_AGENT_H
#define TROCAR_CONSUMER_AGENT_AGENT_H

#include "consumer/agent/confine.h"
#include "consumer/agent/options.h"
#include "consumer/agent/pins_watch.h"
#include "consumer/agent/rules_file.h"
#include "consumer/broker/broker_client.h"
#include "consumer/cgroup/cgroups.h"
#include "consumer/conditions/pressure_follow.h"
#include "consumer/control/control.h"
#include "consumer/discovery/cgroups_unseen.h"
#include "consumer/discovery/discovery.h"
#include "consumer/evidence/locks/long_wait_table.h"
#include "consumer/evidence/sockets/socket_passes.h"
#include "consumer/evidence/time/accounts_hold.h"
#include "consumer/facts/facts_reader.h"
#include "consumer/io/loop.h"
#include "consumer/io/schedule.h"
#include "consumer/io/service_notify.h"
#include "consumer/kernel/counts.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/methods/methods.h"
#include "consumer/output/event_budget.h"
#include "consumer/output/event_line.h"
#include "consumer/output/event_log.h"
#include "consumer/output/host.h"
#include "consumer/output/output_queue.h"
#include "consumer/process/mappings_reread.h"
#include "consumer/process/process.h"
#include "consumer/process/process_mappings.h"
#include "consumer/process/process_targets.h"
#include "consumer/process/process_unwind.h"
#include "consumer/report/report_thread.h"
#include "consumer/rules/ruleset.h"
#include "consumer/rules/shares.h"
#include "consumer/sampling/drain.h"
#include "consumer/sampling/looks.h"
#include "consumer/sampling/other_ends.h"
#include "consumer/sampling/recorder.h"
#include "consumer/sampling/sampler.h"
#include "consumer/sampling/wait_recorder.h"
#include "consumer/session/session.h"
#include "consumer/signals/signal_programs.h"
#include "consumer/telemetry/health.h"
#include "consumer/telemetry/kernel_errors.h"
#include "consumer/telemetry/losses.h"
#include "consumer/telemetry/telemetry.h"
#include "consumer/telemetry/watch_events.h"
#include "consumer/trigger/trigger.h"
#include "consumer/watch/scope.h"
#include "consumer/watch/watch.h"
#include "consumer/watch/watch_facts.h"
#include "policy/policy.h"
#include "shared/tools/macro.h"

struct agent {
	struct options options;
	struct host host;
	struct pinned_maps pins;
	gid_t socket_group;	 /* of the control socket */
	struct policy_self self; /* read back from the kernel after the lock-down */
	struct loop *loop;
	struct output *output;
	struct subscriptions *subscriptions; /* control clients that follow the lines */
	struct kept_lines *kept;	     /* lines of the last sessions; NULL: none are kept */
	struct event_lines lines;
	struct symbols *symbols;
	struct report_thread *reporter;
	struct control_server *control;
	struct cgroups cgroups;
	struct facts_reader facts;
	struct cgroups_unseen unseen;
	struct active_rules active;
	struct event_log log;
	struct event_budget budget;
	struct schedule schedule;
	struct processes processes;
	struct process_targets targets;
	struct process_mappings mappings;
	struct mappings_queue queue;
	struct mappings_reread reread;
	struct process_unwind unwind;
	struct watches watches;
	struct scope scope;
	struct pressure_follow pressure;
	struct sessions sessions;
	struct triggers triggers;
	struct watch_events watch_events;
	struct shares shares;
	struct recorder recorder;
	struct drain drain;
	struct looks looks;
	struct socket_passes sockets;
	struct other_ends other_ends;
	struct wait_recorder waits;
	struct broker_client *broker; /* the main thread's */
	struct broker_client *files;  /* a second one, for threads that read processes' files */
	struct sampler sampler;
	struct signal_programs programs;
	struct account_holds accounts;
	struct long_wait_sweep long_waits;
	struct counts counts;
	struct telemetry telemetry;
	struct discovery discovery;
	struct methods methods;
	struct confinement confinement;
	struct loop_source *rules_timer, *rules_source, *signal_source, *pins_source,
		*output_source;
	uint64_t start_ns;
	uint64_t forgot_ns;    /* last search for unused modules */
	uint64_t drained_turn; /* turn of the loop in which agent_drain last ran */
	uint32_t owner;	       /* value of control.owner while the maps are this consumer's */
	bool ousted;  /* another consumer took over the maps, or another set replaced them */
	bool started; /* agent.start was written, so agent.stop will be */
	struct losses losses;
	struct health health;
	struct kernel_errors kernel_errors;
	struct service_notify notify;	  /* the service manager, if any */
	struct loop_source *notify_timer; /* the watchdog's; before that, repeats READY=1 */
	bool notified;			  /* the service manager took READY=1 */
	const char *stop_reason;
	int signal_fd;
	struct rules_file rules_file;
	struct pins_watch pins_watch;
};

/*
 * Passes each module its collaborators. Call when everything that needs a name or a path is open.
 */
void agent_wire(struct agent *a);

/*
 * Takes over the maps, writes agent.start, applies the rules file, and runs until a signal. Call
 * after the lock-down. Returns 0, or -errno after a message on stderr.
 */
int agent_run(struct agent *a);

/* Ends all sessions and watches, waits for their lines, writes agent.stop. */
void agent_stop(struct agent *a);

/*
 * Drains all rings now and acts on their records, unless it has done so in this iteration of the
 * loop and left a rest: the loop calls it again soon.
 */
void agent_drain(struct agent *a);

#endif
