/* SPDX-License-Identifier: BSD-2-Clause */
/* control_share.h: shares the connections of the control socket by user. Pure. */
#ifndef TROCAR_CONSUMER_CONTROL_CONTROL_SHARE_H
#define TROCAR_CONSUMER_CONTROL_CONTROL_SHARE_H

#include "consumer/control/control_client.h"

/*
 * Returns the client that yields to a newcomer when all connections are taken: the longest idle one
 * of the user with the most connections, so that no user has more than an equal share while others
 * wait. An admin's connection yields only to admins, and an admin takes one from any other user.
 * NULL: the newcomer's user already has its share. `clients` has no NULL.
 */
struct control_client *
control_share_place(struct control_client *const clients[CONTROL_CLIENTS_MAX],
		    const struct control_peer *newcomer);

#endif
