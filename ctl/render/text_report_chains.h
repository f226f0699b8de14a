/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_chains.h: the part of the text report about wait chains. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_CHAINS_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_CHAINS_H

#include <stdint.h>
#include <stdio.h>

#include "ctl/events/store.h"

/*
 * Prints the wait chains, each link indented by one step more than the previous one. Prints nothing
 * if the session has no chain. 0 or -ENOMEM.
 */
int text_report_chains(const struct store *store, const struct store_session *session, FILE *out);

/*
 * Prints the links of the chain with that number in this form, below the line `head`, the first
 * link after `indent` blanks. Prints nothing if the kept lines of the session do not have the
 * chain.
 */
int text_report_chains_one(const struct store *store, const struct store_session *session,
			   uint64_t number, const char *head, unsigned int indent, FILE *out);

#endif
