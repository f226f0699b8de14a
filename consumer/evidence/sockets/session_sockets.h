/* SPDX-License-Identifier: BSD-2-Clause */
/* session_sockets.h: writes the socket peers of a session's cgroup. Report thread only. */
#ifndef TROCAR_CONSUMER_EVIDENCE_SOCKETS_SESSION_SOCKETS_H
#define TROCAR_CONSUMER_EVIDENCE_SOCKETS_SESSION_SOCKETS_H

#include <stddef.h>

#include "consumer/evidence/sockets/socket_peers.h"
#include "consumer/output/event_line.h"
#include "consumer/session/session_result.h"

#define SESSION_SOCKETS_ADDRESS_BYTES 64

/* Writes "10.0.0.5" or "::1", as in `address` of the lines. */
void session_sockets_host(const struct socket_key *key, char text[SESSION_SOCKETS_ADDRESS_BYTES]);

/*
 * Writes "10.0.0.5:5432" or "[::1]:80"; for accepted connections "10.0.0.9 at port 80": the client
 * and the local port.
 */
void session_sockets_address(const struct socket_key *key,
			     char text[SESSION_SOCKETS_ADDRESS_BYTES]);

/* Writes a `socket` line for each peer and listener, one for the others, and the histograms. */
void session_sockets_put(const struct session_result *s, const struct event_lines *lines,
			 const struct event_subject *subject);

#endif
