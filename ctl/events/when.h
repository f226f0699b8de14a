/* SPDX-License-Identifier: BSD-2-Clause */
/* when.h: points in time as a person writes them. */
#ifndef TROCAR_CTL_EVENTS_WHEN_H
#define TROCAR_CTL_EVENTS_WHEN_H

#include <stdint.h>

#define WHEN_RIGHT                                                                            \
	"-1h (s, min, h, d), now, today, yesterday, 15:59, \"2026-11-21 15:59:03\" of local " \
	"time, or 2026-11-21T15:59:03Z of UTC; also the beginning of such a time"

/*
 * A point in time, `now_ns` being now (ns since the epoch, as the result): the forms of WHEN_RIGHT.
 * A time of day alone is today's. Without a Z or an offset from UTC (+02:00) a time is local: the
 * first call reads the time zone. 0 or -EINVAL.
 */
int when_parse(const char *text, uint64_t now_ns, uint64_t *ret_ns);

#endif
