/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * discovery.h: the collaborators of the files that find processes and watches: the events of the
 * kernel side, the scan of all processes, the match against the active rules, and a change of those
 * rules. All borrowed, unless noted. Main thread only.
 */
#ifndef TROCAR_CONSUMER_DISCOVERY_DISCOVERY_H
#define TROCAR_CONSUMER_DISCOVERY_DISCOVERY_H

#include <stdint.h>

#include "consumer/conditions/pressure_follow.h"
#include "consumer/discovery/cgroups_unseen.h"
#include "consumer/discovery/match_queue.h"
#include "consumer/discovery/path_wait.h"
#include "consumer/discovery/process_scan.h"
#include "consumer/io/schedule.h"
#include "consumer/kernel/counts.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/output/event_budget.h"
#include "consumer/output/event_log.h"
#include "consumer/process/mappings_queue.h"
#include "consumer/process/process_mappings.h"
#include "consumer/process/process_targets.h"
#include "consumer/process/process_unwind.h"
#include "consumer/rules/shares.h"
#include "consumer/trigger/trigger.h"
#include "consumer/watch/scope.h"
#include "consumer/watch/watch.h"

struct rule_preview;

/* Records that the current rules file was refused: the active rules are not those of the file. */
struct rules_refused {
	uint64_t since_ns; /* CLOCK_MONOTONIC; 0: it was not refused */
	size_t faults;
	char first[256]; /* as in a compiler's message: "FILE:LINE: /pointer: message" */
};

struct discovery {
	struct pinned_maps *pins;
	const struct event_log *log;
	struct event_budget *budget;
	struct active_rules *active;
	struct cgroups *cgroups;
	struct cgroups_unseen *unseen;
	struct counts *counts;
	struct processes *processes;
	struct process_targets *targets;
	struct process_mappings *mappings;
	struct mappings_queue *queue;
	struct process_unwind *unwind;
	struct watches *watches;
	struct triggers *triggers;
	struct pressure_follow *pressure;
	struct schedule *schedule;
	struct shares *shares;
	struct scope *scope;
	const char *rules_path;	  /* of the rules file */
	struct process_scan scan; /* owned, as the next two members */
	struct match_queue matches;
	struct path_wait waiting;
	uint64_t fills;		      /* number of times that the idle tries were filled */
	struct rule_preview *preview; /* uses the idle tries, borrowed; NULL: none */
	struct rules_refused refused;
};

#endif
