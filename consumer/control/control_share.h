/* SPDX-License-Identifier: BSD-2-Clause */
/* control_share.h: shares the places of the control socket by user. Pure. */
#ifndef TROCAR_CONSUMER_CONTROL_CONTROL_SHARE_H
#define TROCAR_CONSUMER_CONTROL_CONTROL_SHARE_H

#include "consumer/control/control_client.h"

/*
 * Returns the client that gives way to a newcomer when all places are taken: of the user with the
 * most connections the one that has been idle longest, so that no user has more than his share
 * while others ask. An admin's place is for admins, and an admin takes that of anyone else. NULL:
 * the newcomer's user has his share. `clients` has no NULL.
 */
struct control_client *
control_share_place(struct control_client *const clients[CONTROL_CLIENTS_MAX],
		    const struct control_peer *newcomer);

#endif
