/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text_report_head.h: the begin of a session in the text report: its headline, the quality of its
 * data, and the symptom.
 */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_HEAD_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_HEAD_H

#include <stdio.h>

#include "ctl/events/store.h"

/* Each returns 0 or -ENOMEM. */
int text_report_head(const struct store *store, const struct store_session *session, FILE *out);
int text_report_head_quality(const struct store *store, const struct store_session *session,
			     FILE *out);

/* Also prints the triggers that were held back because the session ran, or by its cooldown. */
int text_report_head_symptom(const struct store *store, const struct store_session *session,
			     FILE *out);

#endif
