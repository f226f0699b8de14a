/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_timeline.h: the timeline of one pool; that of all pools is in sections.h. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_TIMELINE_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_TIMELINE_H

#include "ctl/render/session_lines.h"

/* Prints the timeline of the pool that was busiest, on few lines. */
void text_report_timeline_busiest(struct session_lines *s);

#endif
