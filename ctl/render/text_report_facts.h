/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_facts.h: the part of the text report about a session's lines "facts". */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_FACTS_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_FACTS_H

#include <stdio.h>

#include "ctl/events/store.h"

/*
 * Prints a row for each counter that changed, by phase, and the limits. Prints nothing without such
 * lines. 0 or -ENOMEM.
 */
int text_report_facts(const struct store *store, const struct store_session *session, FILE *out);

#endif
