/* SPDX-License-Identifier: BSD-2-Clause */
/* evidence_kinds.h: all kinds of evidence of this version (consumer/signals/signals.h). */
#ifndef TROCAR_CONSUMER_EVIDENCE_EVIDENCE_KINDS_H
#define TROCAR_CONSUMER_EVIDENCE_EVIDENCE_KINDS_H

#include "consumer/signals/signals.h"

/* All, in the order of their lines; NULL behind the last. */
extern const struct signal_kind *const evidence_kinds_in_order[];

/* By id; NULL where this version has no program for it. Rows: evidence_kinds.def. */
extern const struct signal_kind *const evidence_kinds[SIGNAL_COUNT_];

#endif
