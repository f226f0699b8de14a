/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_findings.h: the remedies of findings; their section is in sections.h. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_FINDINGS_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_FINDINGS_H

#include "shared/json/json_node.h"

/*
 * A form (member_text.h) with `word` before a finding that is not certain. Lines of older agents
 * have a bool instead of the level.
 */
#define TEXT_REPORT_FINDINGS_PERHAPS(word) \
	"[level?[!level=certain?" word "]][!level?[!certain=true?" word "]]"

/* Returns the usual remedy for a finding, a literal; NULL for an unknown cause. */
const char *text_report_findings_help(const struct json_node *finding);

#endif
