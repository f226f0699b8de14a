/* SPDX-License-Identifier: BSD-2-Clause */
/* methods.h: what each method of the control socket does; docs/control.md is its reference. */
#ifndef TROCAR_CONSUMER_METHODS_METHODS_H
#define TROCAR_CONSUMER_METHODS_METHODS_H

#include "consumer/control/control.h"
#include "consumer/discovery/discovery.h"
#include "consumer/telemetry/telemetry.h"
#include "consumer/telemetry/watch_events.h"

struct broker_client;
struct subscriptions;
struct symbols;

/* What they work with; all borrowed. Main thread only. */
struct methods {
	const struct telemetry *t;
	struct discovery *d;
	const struct watch_events *watch_events;
	struct subscriptions *subscriptions;
	const struct control_server *control;
	struct symbols *symbols;
	struct broker_client
		*files; /* to the broker, of those that read files of watched processes */
};

/* The table for control_new; its context is a struct methods. Ends with a NULL name. */
extern const struct control_method methods_table[];

#endif
