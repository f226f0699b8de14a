/* SPDX-License-Identifier: BSD-2-Clause */
/* pressure_signs.h: stalls that no pressure shows: watches that are quiet or stuck. */
#ifndef TROCAR_CONSUMER_CONDITIONS_PRESSURE_SIGNS_H
#define TROCAR_CONSUMER_CONDITIONS_PRESSURE_SIGNS_H

struct pressure_follow;

/*
 * Follows the CPU time of watches with a rule that asks for it, by the facts that were read at this
 * drain, and their threads, after each whole pass of the recorder.
 */
void pressure_signs_check(struct pressure_follow *p);

#endif
