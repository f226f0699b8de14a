/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * find_sockets.h: finds the peers that a session's threads waited for, and the peers that wait for
 * the session's cgroup. Report thread only.
 */
#ifndef TROCAR_CONSUMER_ANSWER_FIND_SOCKETS_H
#define TROCAR_CONSUMER_ANSWER_FIND_SOCKETS_H

#include "consumer/answer/findings_search.h"

/*
 * Adds the peer with the awaited answers, and whether the network to it or the peer itself is slow.
 */
void find_sockets_peer(struct findings_search *s);

/*
 * Adds lasting states, whether or not the session's threads wait: connections that are not
 * accepted, bytes that the cgroup does not read, and bytes that a peer does not read.
 */
void find_sockets_clients(struct findings_search *s);

/*
 * Appends the waiting clients to `says`: "; up to 12 connections waited to be accepted at ...";
 * appends nothing if there are none.
 */
void find_sockets_say_waiting(const struct findings_search *s, char says[FINDINGS_SAYS_BYTES]);

#endif
