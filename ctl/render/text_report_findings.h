/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_findings.h: the part of the text report about the causes of waits. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_FINDINGS_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_FINDINGS_H

#include <stdio.h>

#include "ctl/events/store.h"
#include "shared/json/json_node.h"

/*
 * Prints the findings in the session's end line: the time that each explains, and how much of it;
 * and the usual remedy for the first. Prints nothing if the session has no findings. 0 or -ENOMEM.
 */
int text_report_findings(const struct store *store, const struct store_session *session, FILE *out);

/* Returns the usual remedy for a finding, a literal; NULL for an unknown cause. */
const char *text_report_findings_help(const struct json_node *finding);

#endif
