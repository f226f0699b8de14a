/* SPDX-License-Identifier: BSD-2-Clause */
/* broker_listen.h: takes the socket that the service manager opened. Source: sd_listen_fds(3). */
#ifndef TROCAR_LOADER_BROKER_BROKER_LISTEN_H
#define TROCAR_LOADER_BROKER_BROKER_LISTEN_H

/*
 * Takes the listening socket: LISTEN_PID is this process, LISTEN_FDS is 1, descriptor 3 is a
 * listening Unix socket of type SOCK_SEQPACKET. Sets close-on-exec, and removes the variables. The
 * descriptor is the caller's. -ENOENT: the variables are not set, or are for another process;
 * -EPROTOTYPE: more than one descriptor, or descriptor 3 is no such socket.
 */
int broker_listen_take(int *ret_fd);

#endif
