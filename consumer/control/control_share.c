/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/control/control_share.h"

static unsigned int count_of_user(struct control_client *const clients[CONTROL_CLIENTS_MAX],
				  uid_t uid)
{
	unsigned int n = 0;

	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++)
		n += clients[i]->peer.uid == uid;
	return n;
}

/* Whether a client with `n` places gives way before the client found so far, which has `most`. */
static bool goes_first(const struct control_client *client, unsigned int n,
		       const struct control_client *found, unsigned int most)
{
	if (!found || found->peer.admin != client->peer.admin)
		return !found || found->peer.admin;
	return n > most || (n == most && client->asked_ns < found->asked_ns);
}

struct control_client *
control_share_place(struct control_client *const clients[CONTROL_CLIENTS_MAX],
		    const struct control_peer *newcomer)
{
	unsigned int own = count_of_user(clients, newcomer->uid), most = 0, n;
	struct control_client *found = NULL, *client;

	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		client = clients[i];
		if (client->peer.uid == newcomer->uid || (client->peer.admin && !newcomer->admin))
			continue;
		n = count_of_user(clients, client->peer.uid);
		if (n < own + 2 && (client->peer.admin || !newcomer->admin))
			continue;
		if (!goes_first(client, n, found, most))
			continue;
		found = client;
		most = n;
	}
	return found;
}
