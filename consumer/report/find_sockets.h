/* SPDX-License-Identifier: BSD-2-Clause */
/* find_sockets.h: looks for the peers for whom a session's threads waited, and for those who wait
 * for it. */
#ifndef TROCAR_CONSUMER_REPORT_FIND_SOCKETS_H
#define TROCAR_CONSUMER_REPORT_FIND_SOCKETS_H

#include "consumer/report/findings_search.h"

/* Says for whose answers threads waited, and whether the way to that peer is slow, or it itself. */
void find_sockets_peer(struct findings_search *s);

/*
 * Says what lasted for much of the session, whoever of its threads waits: connections that nobody
 * accepts, bytes that it does not read, and bytes that a peer does not read.
 */
void find_sockets_clients(struct findings_search *s);

/*
 * Appends to `says` who waits meanwhile: "; up to 12 connections waited to be accepted at ...".
 * Nothing where nobody does.
 */
void find_sockets_say_waiting(const struct findings_search *s, char says[FINDINGS_SAYS_BYTES]);

#endif
