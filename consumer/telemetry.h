/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * telemetry.h: what the agent says of itself is read from here: a view of every module that has
 * figures. What looks through it changes nothing of it. Main thread only.
 */
#ifndef TROCAR_CONSUMER_TELEMETRY_H
#define TROCAR_CONSUMER_TELEMETRY_H

#include <stdint.h>

#include "consumer/counts.h"
#include "consumer/event_budget.h"
#include "consumer/event_log.h"
#include "consumer/host.h"
#include "consumer/pressure_follow.h"
#include "consumer/process.h"
#include "consumer/recorder.h"
#include "consumer/reporter.h"
#include "consumer/sampler.h"
#include "consumer/session.h"
#include "consumer/trigger.h"
#include "consumer/watch.h"
#include "policy/policy.h"

struct link;

/* All borrowed. */
struct telemetry {
	const struct host *host;
	const struct policy_self *self;
	const struct pins *pins;
	const struct event_log *log;
	const struct event_budget *budget;
	struct output *output;
	const struct counts *counts;
	const struct processes *processes;
	const struct recorder *recorder;
	const struct sampler *sampler;
	const struct sessions *sessions;
	struct reporter *reporter;
	const struct triggers *triggers;
	const struct watches *watches;
	const struct pressure *pressure;
	const struct scope *scope;
	struct link *link; /* to the broker */
	uint64_t start_ns; /* of the consumer, CLOCK_MONOTONIC */
};

#endif
