/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/evidence_kinds.h"

#define KIND(id, object) extern const struct signal_kind object;
#include "consumer/evidence/evidence_kinds.def"
#undef KIND

const struct signal_kind *const evidence_kinds[SIGNAL_COUNT_] = {
#define KIND(id, object) [SIGNAL_##id] = &(object),
#include "consumer/evidence/evidence_kinds.def"
#undef KIND
};

const struct signal_kind *const evidence_kinds_in_order[] = {
#define KIND(id, object) &(object),
#include "consumer/evidence/evidence_kinds.def"
#undef KIND
	NULL,
};
