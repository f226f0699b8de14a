/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * owners_status.h: writes for `trocar status` how much of each bounded resource every owner holds.
 * Main thread only.
 */
#ifndef TROCAR_CONSUMER_TELEMETRY_OWNERS_STATUS_H
#define TROCAR_CONSUMER_TELEMETRY_OWNERS_STATUS_H

struct jsonw;

struct discovery;

/* Writes the array `owners`. */
void owners_status_write(struct discovery *d, struct jsonw *w);

#endif
