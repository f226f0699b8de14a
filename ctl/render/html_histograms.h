/* SPDX-License-Identifier: BSD-2-Clause */
/* html_histograms.h: how long waits and requests of a session were, as pictures of a page. */
#ifndef TROCAR_CTL_RENDER_HTML_HISTOGRAMS_H
#define TROCAR_CTL_RENDER_HTML_HISTOGRAMS_H

#include <stdio.h>

#include "ctl/events/store.h"

#define HTML_HISTOGRAMS_MAX 24 /* pictures; the number of the others is printed */

/*
 * Writes a picture for each line `histogram` of a whole kind of waits: not of one pool, nor of
 * requests of one size. All have the same scale. Nothing where there is none. 0 or -ENOMEM.
 */
int html_histograms_put(const struct store *store, const struct store_session *session, FILE *out);

#endif
