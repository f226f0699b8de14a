/* SPDX-License-Identifier: BSD-2-Clause */
/* broker_main.h: the verb `broker`: opens for the consumer what the consumer may not, and leaves.
 */
#ifndef TROCAR_LOADER_BROKER_MAIN_H
#define TROCAR_LOADER_BROKER_MAIN_H

#include "loader/options.h"

/*
 * Serves the socket that the service manager handed over (sd_listen_fds(3)) until nobody has asked
 * for BROKER_IDLE_MS. Drops what its requests do not need before it takes the first. Returns an
 * exit status.
 */
int broker_main(const struct options *o);

#endif
