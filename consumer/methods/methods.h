/* SPDX-License-Identifier: BSD-2-Clause */
/* methods.h: the methods of the control socket; docs/control.md describes them. */
#ifndef TROCAR_CONSUMER_METHODS_METHODS_H
#define TROCAR_CONSUMER_METHODS_METHODS_H

#include "consumer/control/control.h"
#include "consumer/discovery/discovery.h"
#include "consumer/session/session_result.h"
#include "consumer/telemetry/telemetry.h"
#include "consumer/telemetry/watch_events.h"

struct broker_client;
struct kept_lines;
struct subscriptions;
struct symbols;

/* A session that ends with a connection. */
struct method_tie {
	uint64_t connection; /* 0: of no connection */
	uint64_t session;
	struct session_stopped by;
};

/* The inputs of the methods; all borrowed. Main thread only. */
struct methods {
	const struct telemetry *t;
	struct discovery *d;
	const struct watch_events *watch_events;
	struct subscriptions *subscriptions;
	struct kept_lines *kept; /* NULL: no lines are kept */
	const struct control_server *control;
	struct symbols *symbols;
	struct broker_client *files; /* connection of the threads that read processes' files */
	struct method_tie ties[CONTROL_CLIENTS_MAX];
};

/* The table for control_new, with a struct methods as context. Ends with a NULL name. */
extern const struct control_method methods_table[];

#endif
