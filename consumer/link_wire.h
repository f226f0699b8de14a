/* SPDX-License-Identifier: BSD-2-Clause */
/* link_wire.h: one request and one answer of shared/broker.h, each as one message. */
#ifndef TROCAR_CONSUMER_LINK_WIRE_H
#define TROCAR_CONSUMER_LINK_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "shared/broker.h"

/* What came with an answer. */
struct link_brought {
	int fds[BROKER_DESCRIPTORS_MAX];
	size_t n;
};

void link_wire_close(struct link_brought *brought);

/* Sends a request. 0; -ECONNRESET: the broker has left; -EBADMSG: not the request's length; else
 * -errno of send(2). */
int link_wire_send(int fd, uint32_t request, uint32_t sequence, const void *body, size_t bytes);

/* Waits for something to read, or only looks (0 ms): 0, -ETIMEDOUT or -errno. */
int link_wire_wait(int fd, unsigned int wait_ms);

/*
 * The answer to that request. 0 when it was answered, granted or not; the descriptors are the
 * caller's. -EAGAIN: it is not there yet; -ECONNRESET: the broker has left; -EBADMSG: what came is
 * no answer to it, and nothing of it is open.
 */
int link_wire_receive(int fd, uint32_t request, uint32_t sequence, struct broker_answer *ret_answer,
		      struct link_brought *ret_brought);

/* Why there is no answer (-errno of these), or no connection (errno of connect(2)): a sentence. */
const char *link_wire_text(int r);
const char *link_wire_connect_text(int error);

#endif
