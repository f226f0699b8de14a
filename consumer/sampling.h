/* SPDX-License-Identifier: BSD-2-Clause */
/* sampling.h: from the samples ring to the session that runs in its slot, or to the recorder. */
#ifndef TROCAR_CONSUMER_SAMPLING_H
#define TROCAR_CONSUMER_SAMPLING_H

struct agent;

/* Drains the samples ring. Safe within any handler of the main thread: it starts and ends nothing.
 */
void sampling_drain(struct agent *a);

#endif
