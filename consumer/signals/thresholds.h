/* SPDX-License-Identifier: BSD-2-Clause */
/* thresholds.h: the thresholds of the search for findings: THRESHOLD_CHAIN_PCT, ... */
#ifndef TROCAR_CONSUMER_SIGNALS_THRESHOLDS_H
#define TROCAR_CONSUMER_SIGNALS_THRESHOLDS_H

enum threshold {
#define THRESHOLD(id, value, help) THRESHOLD_##id = (value),
#include "shared/findings/thresholds.def"
#undef THRESHOLD
};

#endif
