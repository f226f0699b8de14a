/* SPDX-License-Identifier: BSD-2-Clause */
/* broker_serve.h: connections and messages, each in bounded time. */
#ifndef TROCAR_LOADER_BROKER_SERVE_H
#define TROCAR_LOADER_BROKER_SERVE_H

#include <sys/types.h>

#include "loader/broker_dispatch.h"

#define BROKER_IDLE_MS	 10000 /* without a message, with or without a connection: it leaves */
#define BROKER_SEND_MS	 1000  /* a client that does not take its answer loses the connection */
#define BROKER_HOLD_MS	 10    /* who asks more than the rate allows is not heard for so long */
#define BROKER_REQUEST_S 5     /* what one request may take before SIGALRM ends the process */

struct broker_serve {
	int listen_fd; /* borrowed */
	uid_t uid;     /* who may ask */
	struct broker_dispatch dispatch;
	int connection_fd; /* owned while broker_serve runs; -1: none */
	bool held;	   /* the connection is not read until the hold is over */
};

/* Serves until nobody has asked for BROKER_IDLE_MS: 0. -errno when the listening socket fails. */
int broker_serve(struct broker_serve *s);

#endif
