/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_sockets.h: the part of the text report about TCP peers and listeners. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_SOCKETS_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_SOCKETS_H

#include <stdio.h>

#include "ctl/events/store.h"

/*
 * Prints the peers of the session's cgroup, the data that waited there, and the queues of its
 * listeners. Prints nothing if the session has no such sockets. 0 or -ENOMEM.
 */
int text_report_sockets(const struct store *store, const struct store_session *session, FILE *out);

#endif
