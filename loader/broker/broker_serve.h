/* SPDX-License-Identifier: BSD-2-Clause */
/* broker_serve.h: accepts connections and serves their messages, each in bounded time. */
#ifndef TROCAR_LOADER_BROKER_BROKER_SERVE_H
#define TROCAR_LOADER_BROKER_BROKER_SERVE_H

#include <sys/types.h>

#include "loader/broker/broker_dispatch.h"
#include "loader/broker/broker_peer.h"
#include "loader/broker/broker_worker.h"

#define BROKER_IDLE_MS	 10000 /* without a message: the broker exits, even with open connections */
#define BROKER_SEND_MS	 1000  /* to receive an answer: a slower client loses the connection */
#define BROKER_HOLD_MS	 10    /* a connection above the rate is not read for this time */
#define BROKER_REQUEST_S 5     /* for one request in the broker; then SIGALRM ends the process */

struct broker_connection {
	int fd; /* owned while broker_serve runs; -1: none */
	struct broker_session session;
	uint64_t held_ns; /* not read before this moment; 0: read now */
	/* While a worker handles a request, no other request is read from the connection: */
	uint64_t start_ns;	      /* when to start the worker; 0: nothing to start */
	struct broker_worker *worker; /* the running worker; NULL: none */
	struct broker_holdings mark;  /* peer.given when the worker began */
	uint64_t began_ns;
};

struct broker_serve {
	int listen_fd; /* borrowed */
	uid_t uid;     /* the allowed user */
	struct broker_dispatch dispatch;
	struct broker_connection connections[BROKER_CONNECTIONS]; /* all from one process */
	struct broker_peer peer; /* that process; the last one while no connection is open */
	struct broker_workers workers;
	uint64_t heard_ns; /* time of the last message or connection */
};

/*
 * Serves until no message has arrived for BROKER_IDLE_MS, then returns 0. Continues while a
 * given-up worker still runs, so that the number of such workers stays bounded. -errno: the
 * listening socket failed.
 */
int broker_serve(struct broker_serve *s);

#endif
