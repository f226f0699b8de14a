/* SPDX-License-Identifier: BSD-2-Clause */
/* agent.h: everything the consumer's main thread owns, in one place. */
#ifndef TROCAR_CONSUMER_AGENT_H
#define TROCAR_CONSUMER_AGENT_H

#include "consumer/cgroups.h"
#include "consumer/cgroups_unseen.h"
#include "consumer/confine.h"
#include "consumer/control.h"
#include "consumer/counts.h"
#include "consumer/discovery.h"
#include "consumer/drain.h"
#include "consumer/event_budget.h"
#include "consumer/event_log.h"
#include "consumer/health.h"
#include "consumer/host.h"
#include "consumer/kernel_errors.h"
#include "consumer/line.h"
#include "consumer/link.h"
#include "consumer/loop.h"
#include "consumer/losses.h"
#include "consumer/mappings_reread.h"
#include "consumer/methods.h"
#include "consumer/notify.h"
#include "consumer/options.h"
#include "consumer/output.h"
#include "consumer/pins.h"
#include "consumer/pressure_follow.h"
#include "consumer/process.h"
#include "consumer/process_mappings.h"
#include "consumer/process_targets.h"
#include "consumer/process_unwind.h"
#include "consumer/recorder.h"
#include "consumer/reporter.h"
#include "consumer/ruleset.h"
#include "consumer/sampler.h"
#include "consumer/schedule.h"
#include "consumer/scope.h"
#include "consumer/session.h"
#include "consumer/shares.h"
#include "consumer/signal_programs.h"
#include "consumer/telemetry.h"
#include "consumer/trigger.h"
#include "consumer/watch.h"
#include "consumer/watch_events.h"
#include "policy/policy.h"
#include "shared/macro.h"

struct agent {
	struct options options;
	struct host host;
	struct pins pins;
	gid_t socket_group;	 /* of the control socket */
	struct policy_self self; /* as read back after the lock-down */
	struct loop *loop;
	struct output *output;
	struct subscriptions *subscriptions; /* to its lines, over the control socket */
	struct lines lines;
	struct symbols *symbols;
	struct reporter *reporter;
	struct control_server *control;
	struct cgroups cgroups;
	struct cgroups_unseen unseen;
	struct active_rules active;
	struct event_log log;
	struct event_budget budget;
	struct schedule schedule;
	struct processes processes;
	struct process_targets targets;
	struct process_mappings mappings;
	struct mappings_reread reread;
	struct process_unwind unwind;
	struct watches watches;
	struct scope scope;
	struct pressure pressure;
	struct sessions sessions;
	struct triggers triggers;
	struct watch_events watch_events;
	struct shares shares;
	struct recorder recorder;
	struct drain drain;
	struct link *link;  /* to the broker, of this thread */
	struct link *files; /* another, of those that read files of watched processes */
	struct sampler sampler;
	struct signal_programs programs;
	struct counts counts;
	struct telemetry telemetry;
	struct discovery discovery;
	struct methods methods;
	struct confinement confinement;
	struct loop_source *rules_source, *signal_source;
	uint64_t start_ns;
	uint32_t owner; /* what control.owner must say */
	bool ousted;	/* another consumer has the maps */
	bool started;	/* agent.start was said: agent.stop will be */
	struct losses losses;
	struct health health;
	struct kernel_errors kernel_errors;
	struct notify notify; /* the service manager, if there is one */
	struct loop_source
		*notify_timer; /* its watchdog; else a READY=1 that has to be said again */
	bool notified;	       /* READY=1 was taken */
	const char *stop_reason;
	int signal_fd, inotify_fd;
};

/*
 * Gives each module its collaborators; once all that needs a name or a path is open.
 */
void agent_wire(struct agent *a);

/*
 * Takes the maps over, says agent.start, applies the rules file and runs until a signal. The
 * process is locked down by then. 0 or -errno, said on stderr.
 */
int agent_run(struct agent *a);

/* Ends all sessions and watches, has their lines written, says agent.stop. */
void agent_stop(struct agent *a);

/* Drains all rings now and does what follows from it. */
void agent_drain(struct agent *a);

#endif
