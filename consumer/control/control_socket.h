/* SPDX-License-Identifier: BSD-2-Clause */
/* control_socket.h: the name of the control socket: removes a stale socket, and binds. */
#ifndef TROCAR_CONSUMER_CONTROL_CONTROL_SOCKET_H
#define TROCAR_CONSUMER_CONTROL_CONTROL_SOCKET_H

#include <sys/un.h>

/*
 * Removes a stale socket at the address. Returns 0 if nothing is there afterwards; -EADDRINUSE: a
 * process listens there; -EEXIST: it is no socket; -errno.
 */
int control_socket_clear(const struct sockaddr_un *address);

/*
 * Binds with mode 0660 by umask(2). chmod(2) would follow a link that the directory's owner may
 * have put there in the meantime, with the consumer's privilege. A client can connect from
 * listen(2) on. Returns 0 or -errno.
 */
int control_socket_bind(int fd, const struct sockaddr_un *address);

#endif
