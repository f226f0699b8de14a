/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_findings.h: the part of the text report about the causes of waits. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_FINDINGS_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_FINDINGS_H

#include <stdio.h>

#include "ctl/events/store.h"
#include "shared/json/json_node.h"

/*
 * Prints the findings of the session's end: what each explains, and how much; and the usual remedy
 * for the first. Nothing where the session has none. 0 or -ENOMEM.
 */
int text_report_findings(const struct store *store, const struct store_session *session, FILE *out);

/* Returns the usual remedy for a finding, a literal; NULL for a cause that is not known. */
const char *text_report_findings_help(const struct json_node *finding);

#endif
