/* SPDX-License-Identifier: BSD-2-Clause */
/* broker_status.h: what `trocar status` says of the broker. Main thread only. */
#ifndef TROCAR_CONSUMER_BROKER_STATUS_H
#define TROCAR_CONSUMER_BROKER_STATUS_H

#include "consumer/link.h"
#include "consumer/pins.h"
#include "shared/jsonw.h"

/* Writes "broker": {...}: the requests of both links, and the broker's own counts. */
void broker_status_write(struct link *main, struct link *files, const struct pins *pins,
			 struct jsonw *w);

#endif
