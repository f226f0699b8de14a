/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_chains.h: prints one wait chain; the section of all chains is in sections.h. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_CHAINS_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_CHAINS_H

#include "ctl/render/session_lines.h"

/*
 * Prints the links of the chain with that number in the form of the section, below the line `head`,
 * the first link after `indent` blanks. Prints nothing if the kept lines of the session do not have
 * the chain.
 */
void text_report_chains_one(struct session_lines *s, uint64_t number, const char *head,
			    unsigned int indent);

#endif
