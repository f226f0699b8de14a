/* SPDX-License-Identifier: BSD-2-Clause */
/* broker_rights.h: a message with the descriptors of a result. Source: unix(7), cmsg(3). */
#ifndef TROCAR_LOADER_BROKER_RIGHTS_H
#define TROCAR_LOADER_BROKER_RIGHTS_H

#include <stddef.h>

#include "loader/broker/broker_dispatch.h"

/*
 * Sends `bytes` of `data` as one message, with the descriptors of `result` in it, which stay the
 * caller's. Does not wait: -EAGAIN when there is no room. 0 or -errno.
 */
int broker_rights_send(int fd, const void *data, size_t bytes, const struct broker_result *result);

/*
 * The message of broker_rights_send of one of our own processes: just `bytes` of it, and its
 * descriptors into result->fds, which the caller owns then. -EAGAIN: none is there; -EPIPE: the
 * other side has ended; -EBADMSG: not such a message, nothing of it is open.
 */
int broker_rights_receive(int fd, void *data, size_t bytes, struct broker_result *result);

#endif
