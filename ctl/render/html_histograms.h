/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * html_histograms.h: draws histograms of the lengths of waits and requests of a session, for a
 * page.
 */
#ifndef TROCAR_CTL_RENDER_HTML_HISTOGRAMS_H
#define TROCAR_CTL_RENDER_HTML_HISTOGRAMS_H

#include <stdio.h>

#include "ctl/events/store.h"

#define HTML_HISTOGRAMS_MAX 24 /* pictures; the number of the others is printed */

/*
 * Writes a picture for each line `histogram` of the session with that number, of a whole kind of
 * waits, not for a line of one pool or of requests of one size. All pictures have the same scale.
 * Writes nothing if there is no such line. 0 or -ENOMEM.
 */
int html_histograms_put(const struct store *store, uint32_t session, FILE *out);

#endif
