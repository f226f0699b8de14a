/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broker_rights.h: sends and receives a message with the descriptors of a result. Source: unix(7),
 * cmsg(3).
 */
#ifndef TROCAR_LOADER_BROKER_BROKER_RIGHTS_H
#define TROCAR_LOADER_BROKER_BROKER_RIGHTS_H

#include <stddef.h>

#include "loader/broker/broker_dispatch.h"

/*
 * Sends `bytes` of `data` and the descriptors of `result` as one message; the caller keeps the
 * descriptors. Never blocks: -EAGAIN when the socket is full. 0 or -errno.
 */
int broker_rights_send(int fd, const void *data, size_t bytes, const struct broker_result *result);

/*
 * Receives a message that a worker sent by broker_rights_send: exactly `bytes`, and its descriptors
 * into result->fds, which the caller then owns. -EAGAIN: no message has arrived; -EPIPE: the other
 * end is closed; -EBADMSG: the message has another length; its descriptors are closed.
 */
int broker_rights_receive(int fd, void *data, size_t bytes, struct broker_result *result);

#endif
