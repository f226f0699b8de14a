/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * telemetry.h: the inputs of telemetry: a view of every module that has figures, which it does not
 * change. Main thread only.
 */
#ifndef TROCAR_CONSUMER_TELEMETRY_TELEMETRY_H
#define TROCAR_CONSUMER_TELEMETRY_TELEMETRY_H

#include <stdint.h>

#include "consumer/conditions/pressure_follow.h"
#include "consumer/kernel/counts.h"
#include "consumer/output/event_budget.h"
#include "consumer/output/event_log.h"
#include "consumer/output/host.h"
#include "consumer/process/process.h"
#include "consumer/report/report_thread.h"
#include "consumer/sampling/recorder.h"
#include "consumer/sampling/sampler.h"
#include "consumer/session/session.h"
#include "consumer/trigger/trigger.h"
#include "consumer/watch/watch.h"
#include "policy/policy.h"

struct broker_client;

/* All borrowed. */
struct telemetry {
	struct loop *loop;
	const struct host *host;
	const struct policy_self *self;
	const struct pinned_maps *pins;
	const struct event_log *log;
	const struct event_budget *budget;
	struct output *output;
	const struct counts *counts;
	const struct processes *processes;
	struct symbols *symbols;
	const struct recorder *recorder;
	const struct looks *looks;
	const struct wait_recorder *waits;
	const struct sampler *sampler;
	const struct sessions *sessions;
	struct report_thread *reporter;
	const struct triggers *triggers;
	const struct watches *watches;
	const struct pressure_follow *pressure;
	const struct scope *scope;
	struct broker_client *broker; /* borrowed */
	uint64_t start_ns;	      /* when the consumer started, CLOCK_MONOTONIC */
};

#endif
