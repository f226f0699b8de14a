/* SPDX-License-Identifier: BSD-2-Clause */
/* broker_status.h: writes the broker's part of the method `status`. Main thread only. */
#ifndef TROCAR_CONSUMER_TELEMETRY_BROKER_STATUS_H
#define TROCAR_CONSUMER_TELEMETRY_BROKER_STATUS_H

#include "consumer/broker/broker_client.h"
#include "consumer/kernel/pinned_maps.h"

struct jsonw;

/* Writes "broker": {...}: the requests on both connections, and the broker's own counts. */
void broker_status_write(struct broker_client *main, struct broker_client *files,
			 const struct pinned_maps *pins, struct jsonw *w);

#endif
