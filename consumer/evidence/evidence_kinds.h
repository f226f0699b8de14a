/* SPDX-License-Identifier: BSD-2-Clause */
/* evidence_kinds.h: all kinds of evidence of this version (consumer/signals/signals.h). */
#ifndef TROCAR_CONSUMER_EVIDENCE_EVIDENCE_KINDS_H
#define TROCAR_CONSUMER_EVIDENCE_EVIDENCE_KINDS_H

#include "consumer/signals/signals.h"

/* All kinds, in the order in which their lines are written; NULL-terminated. */
extern const struct signal_kind *const evidence_kinds_in_order[];

/* All kinds by id; NULL if this version does not implement the kind. Rows: evidence_kinds.def. */
extern const struct signal_kind *const evidence_kinds[SIGNAL_COUNT_];

#endif
