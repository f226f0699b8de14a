/* SPDX-License-Identifier: BSD-2-Clause */
/* pressure_signs.h: detects stalls that no pressure shows: watches that are quiet or stuck. */
#ifndef TROCAR_CONSUMER_CONDITIONS_PRESSURE_SIGNS_H
#define TROCAR_CONSUMER_CONDITIONS_PRESSURE_SIGNS_H

struct pressure_follow;

/*
 * For watches with a rule that asks for it, follows the CPU time, by the facts read at this drain,
 * and the threads, after each complete pass of the recorder.
 */
void pressure_signs_check(struct pressure_follow *p);

#endif
