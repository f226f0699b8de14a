/* SPDX-License-Identifier: BSD-2-Clause */
/* looks_status.h: the object `looks` of the method `status`. */
#ifndef TROCAR_CONSUMER_TELEMETRY_LOOKS_STATUS_H
#define TROCAR_CONSUMER_TELEMETRY_LOOKS_STATUS_H

#include "consumer/telemetry/telemetry.h"

struct jsonw;

/* Writes `looks`: {...}: the cost of the recorder's sampling passes, and the kept waits. */
void looks_status_write(const struct telemetry *t, struct jsonw *w);

#endif
