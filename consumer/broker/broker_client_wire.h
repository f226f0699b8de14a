/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broker_client_wire.h: sends one request and receives one answer of shared/broker/broker.h, each
 * as one message.
 */
#ifndef TROCAR_CONSUMER_BROKER_BROKER_CLIENT_WIRE_H
#define TROCAR_CONSUMER_BROKER_BROKER_CLIENT_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "shared/broker/broker.h"

/* The descriptors received with an answer. */
struct broker_client_brought {
	int fds[BROKER_DESCRIPTORS_MAX];
	size_t n;
};

void broker_client_wire_close(struct broker_client_brought *brought);

/*
 * Sends a request. 0; -ECONNRESET: the broker has exited; -EBADMSG: `bytes` is not the request's
 * length; else -errno of send(2).
 */
int broker_client_wire_send(int fd, uint32_t request, uint32_t sequence, const void *body,
			    size_t bytes);

/*
 * Waits until there is something to read, at most `wait_ms` (0: only checks). Returns 0, -ETIMEDOUT
 * or -errno.
 */
int broker_client_wire_wait(int fd, unsigned int wait_ms);

/*
 * Receives the answer to that request. Returns 0 if the broker answered, whether it granted or
 * refused; the caller owns the descriptors. -EAGAIN: no answer yet; -ECONNRESET: the broker has
 * exited; -EBADMSG: the message does not answer that request, and all its descriptors are closed.
 */
int broker_client_wire_receive(int fd, uint32_t request, uint32_t sequence,
			       struct broker_answer *ret_answer,
			       struct broker_client_brought *ret_brought);

/*
 * Return a sentence with the reason for a missing answer: for an -errno of the functions above, and
 * for an errno of connecting to the broker.
 */
const char *broker_client_wire_text(int r);
const char *broker_client_wire_connect_text(int error);

#endif
