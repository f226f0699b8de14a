/* SPDX-License-Identifier: BSD-2-Clause */
/* broker_main.h: the verb `broker`: opens files for the consumer that it may not open itself. */
#ifndef TROCAR_LOADER_BROKER_MAIN_H
#define TROCAR_LOADER_BROKER_MAIN_H

#include "loader/options.h"

/*
 * Serves the socket that the service manager passed (sd_listen_fds(3)) until no message has arrived
 * for BROKER_IDLE_MS. Drops the capabilities that no request needs before the first connection.
 * Returns an enum exit_status.
 */
int broker_main(const struct options *o);

#endif
