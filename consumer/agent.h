/* SPDX-License-Identifier: BSD-2-Clause */
/* agent.h: everything the consumer's main thread owns, in one place. */
#ifndef TROCAR_CONSUMER_AGENT_H
#define TROCAR_CONSUMER_AGENT_H

#include "consumer/arming.h"
#include "consumer/cgroups.h"
#include "consumer/cgroups_unseen.h"
#include "consumer/control.h"
#include "consumer/discovery_lines.h"
#include "consumer/health.h"
#include "consumer/host.h"
#include "consumer/line.h"
#include "consumer/link.h"
#include "consumer/loop.h"
#include "consumer/losses.h"
#include "consumer/notify.h"
#include "consumer/options.h"
#include "consumer/output.h"
#include "consumer/pins.h"
#include "consumer/pressure.h"
#include "consumer/process.h"
#include "consumer/recorder.h"
#include "consumer/reporter.h"
#include "consumer/ruleset.h"
#include "consumer/scope.h"
#include "consumer/session.h"
#include "consumer/shares.h"
#include "consumer/unwinding.h"
#include "consumer/watch.h"
#include "policy/policy.h"
#include "shared/macro.h"

/* Counts of the consumer itself; the kernel's stand in struct totals. */
struct agent_totals {
	uint64_t samples;	  /* drained */
	uint64_t samples_bad;	  /* records that no sampler writes */
	uint64_t stale_events;	  /* events of rules that are gone */
	uint64_t mappings_failed; /* reads of mappings that found nobody */
	uint64_t processes_full;  /* samples of processes that the table had no room for */
	uint64_t scans;
};

/* Time between scans of all processes while something is watched. */
#define AGENT_SCAN_NS (30 * NSEC_PER_SEC)

/* Time between scans that repair what events did not tell. */
#define AGENT_REPAIR_NS (3 * NSEC_PER_SEC)

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
	struct ruleset *set; /* in force */
	uint32_t generation; /* last one given */
	struct processes processes;
	struct unwinding unwinding;
	struct watches watches;
	struct scope scope;
	struct pressure pressure;
	struct sessions sessions;
	struct shares shares;
	struct line_budget line_budget;
	struct recorder recorder;
	struct link *link;  /* to the broker, of this thread */
	struct link *files; /* another, of those that read files of watched processes */
	struct arming arming;
	struct agent_totals totals;
	struct loop_source *drain_timer, *events_timer, *scan_timer, *rules_source, *signal_source;
	struct loop_source *lines_timer, *linger_timer;
	uint64_t lines_minute;		 /* at whose end lines_timer comes */
	uint64_t drain_every_ns;	 /* what drain_timer is set to */
	uint64_t scan_every_ns;		 /* the same of scan_timer */
	uint64_t idle_scan_ns;		 /* between scans while nothing is watched; 0: no rules */
	const struct ruleset *paced_set; /* of which idle_scan_ns is; never followed */
	uint64_t scan_number;
	uint64_t scanned_ns;  /* when the last scan began */
	uint64_t scan_due_ns; /* when scan_timer is set to for once, 0: to its pace */
	uint64_t start_ns;
	uint32_t owner; /* what control.owner must say */
	bool ousted;	/* another consumer has the maps */
	bool started;	/* agent.start was said: agent.stop will be */
	bool settling;	/* events_timer waits for the rest of a burst */
	struct losses losses;
	struct health health;
	struct notify notify; /* the service manager, if there is one */
	struct loop_source
		*notify_timer; /* its watchdog; else a READY=1 that has to be said again */
	bool notified;	       /* READY=1 was taken */
	const char *stop_reason;
	int signal_fd, inotify_fd;
};

/* The subject of a line about `rule` (may be NULL) in cgroup `cgroup_id`. */
struct line_subject agent_subject(struct agent *a, const struct rule *rule, uint64_t cgroup_id);

/* Sets how often the rings are drained, from what is going on; after every change. */
void agent_pace(struct agent *a);

/* Drains once more within milliseconds; from a drain that found something missing. */
void agent_drain_soon(struct agent *a);

/*
 * Takes the maps over, says agent.start, applies the rules file and runs until a signal. The
 * process is locked down by then. 0 or -errno, said on stderr.
 */
int agent_run(struct agent *a);

/* Ends all sessions and watches, has their lines written, says agent.stop. */
void agent_stop(struct agent *a);

/* Has the processes scanned within a moment, whatever asks for it how often. */
void agent_scan_soon(struct agent *a);

/* The same because events did not come: not sooner after the last scan than AGENT_REPAIR_NS. */
void agent_repair_soon(struct agent *a);

/* Drains all rings now and does what follows from it. */
void agent_drain(struct agent *a);

#endif
