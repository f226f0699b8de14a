/* SPDX-License-Identifier: BSD-2-Clause */
/* broker_client_wire.h: one request and one answer of shared/broker/broker.h, each as one message.
 */
#ifndef TROCAR_CONSUMER_BROKER_BROKER_CLIENT_WIRE_H
#define TROCAR_CONSUMER_BROKER_BROKER_CLIENT_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "shared/broker/broker.h"

/* What came with an answer. */
struct broker_client_brought {
	int fds[BROKER_DESCRIPTORS_MAX];
	size_t n;
};

void broker_client_wire_close(struct broker_client_brought *brought);

/* Sends a request. 0; -ECONNRESET: the broker has left; -EBADMSG: not the request's length; else
 * -errno of send(2). */
int broker_client_wire_send(int fd, uint32_t request, uint32_t sequence, const void *body,
			    size_t bytes);

/* Waits for something to read, or only looks (0 ms): 0, -ETIMEDOUT or -errno. */
int broker_client_wire_wait(int fd, unsigned int wait_ms);

/*
 * The answer to that request. 0 when it was answered, granted or not; the descriptors are the
 * caller's. -EAGAIN: it is not there yet; -ECONNRESET: the broker has left; -EBADMSG: what came is
 * no answer to it, and nothing of it is open.
 */
int broker_client_wire_receive(int fd, uint32_t request, uint32_t sequence,
			       struct broker_answer *ret_answer,
			       struct broker_client_brought *ret_brought);

/* Why there is no answer (-errno of these), or no connection (errno of connect(2)): a sentence. */
const char *broker_client_wire_text(int r);
const char *broker_client_wire_connect_text(int error);

#endif
