/* SPDX-License-Identifier: BSD-2-Clause */
/* sampler_status.h: writes the state of sampling into lines and answers. Main thread only. */
#ifndef TROCAR_CONSUMER_SAMPLING_SAMPLER_STATUS_H
#define TROCAR_CONSUMER_SAMPLING_SAMPLER_STATUS_H

#include "consumer/sampling/sampler.h"

struct jsonw;

/* Writes "sampling": {...} of agent.start, watch.start, session.start and the method `status`. */
void sampler_status_write(const struct sampler *s, struct jsonw *w);

#endif
