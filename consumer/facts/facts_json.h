/* SPDX-License-Identifier: BSD-2-Clause */
/* facts_json.h: writes the members of the "facts" line of one source. Any thread. */
#ifndef TROCAR_CONSUMER_FACTS_FACTS_JSON_H
#define TROCAR_CONSUMER_FACTS_FACTS_JSON_H

#include "consumer/facts/facts_disks.h"
#include "consumer/facts/facts_phases.h"

struct jsonw;

/*
 * Writes `source`, `from`, `from_cgroup`, `limits`, `phases`, `disks` (source io only), and
 * `missing`. `cgroup` is the watch's path, `disks` may be NULL.
 */
void facts_json_write(const struct facts_phases *f, enum facts_source source, const char *cgroup,
		      const struct facts_disks *disks, struct jsonw *w);

#endif
