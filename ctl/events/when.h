/* SPDX-License-Identifier: BSD-2-Clause */
/* when.h: parses points in time as a person writes them. */
#ifndef TROCAR_CTL_EVENTS_WHEN_H
#define TROCAR_CTL_EVENTS_WHEN_H

#include <stdint.h>

#define WHEN_RIGHT                                                                            \
	"-1h (s, min, h, d), now, today, yesterday, 15:59, \"2026-11-21 15:59:03\" of local " \
	"time, or 2026-11-21T15:59:03Z of UTC; also the beginning of such a time"

/*
 * Parses a point in time in a form of WHEN_RIGHT. `now_ns` is the present; it and the result are ns
 * since the epoch. A time of day alone is a time of today. Without a Z or an offset from UTC
 * (+02:00) a time is local: the first call reads the time zone. 0 or -EINVAL.
 */
int when_parse(const char *text, uint64_t now_ns, uint64_t *ret_ns);

#endif
