/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_asides.h: the lines outside the sessions, at the end of the text report. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_ASIDES_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_ASIDES_H

#include <stdio.h>

#include "ctl/events/asides.h"

/*
 * Prints the held-back triggers, the errors and the rejected rules, a line for each kind. 0 or
 * -ENOMEM.
 */
int text_report_asides(const struct asides *asides, const struct store *store, FILE *out);

#endif
