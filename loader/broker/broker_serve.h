/* SPDX-License-Identifier: BSD-2-Clause */
/* broker_serve.h: connections and messages, each in bounded time. */
#ifndef TROCAR_LOADER_BROKER_SERVE_H
#define TROCAR_LOADER_BROKER_SERVE_H

#include <sys/types.h>

#include "loader/broker/broker_dispatch.h"
#include "loader/broker/broker_peer.h"
#include "loader/broker/broker_worker.h"

#define BROKER_IDLE_MS	 10000 /* without a message, with or without a connection: it leaves */
#define BROKER_SEND_MS	 1000  /* a client that does not take its answer loses the connection */
#define BROKER_HOLD_MS	 10    /* who asks more than the rate allows is not heard for so long */
#define BROKER_REQUEST_S 5     /* what one request may take here before SIGALRM ends the process */

struct broker_connection {
	int fd; /* owned while broker_serve runs; -1: none */
	struct broker_session session;
	uint64_t held_ns; /* it is not read before; 0: it is read */
	/* Until a request that is done apart is answered, no other is read: */
	uint64_t start_ns;	      /* it waits for this moment; 0: it does not */
	struct broker_worker *worker; /* that is at it; NULL: none */
	struct broker_holdings mark;  /* what had been given to the asker when it began */
	uint64_t began_ns;
};

struct broker_serve {
	int listen_fd; /* borrowed */
	uid_t uid;     /* who may ask */
	struct broker_dispatch dispatch;
	struct broker_connection connections[BROKER_CONNECTIONS]; /* all of one process */
	struct broker_peer peer;				  /* that process; the last one */
	struct broker_workers workers;
	uint64_t heard_ns; /* the last message or connection */
};

/*
 * Serves until nobody has asked for BROKER_IDLE_MS: 0. Stays longer while a worker that was given
 * up has not ended, so that there are never more of those than may be. -errno when the listening
 * socket fails.
 */
int broker_serve(struct broker_serve *s);

#endif
