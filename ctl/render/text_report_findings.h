/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_findings.h: the remedies of findings; their section is in sections.h. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_FINDINGS_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_FINDINGS_H

#include "shared/json/json_node.h"

/* Returns the usual remedy for a finding, a literal; NULL for an unknown cause. */
const char *text_report_findings_help(const struct json_node *finding);

#endif
