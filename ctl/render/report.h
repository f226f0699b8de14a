/* SPDX-License-Identifier: BSD-2-Clause */
/* report.h: the command that tells each session as text for a terminal. */
#ifndef TROCAR_CTL_RENDER_REPORT_H
#define TROCAR_CTL_RENDER_REPORT_H

#include "ctl/view/view.h"

/* Returns enum command_exit. */
int report_call(const struct options *options, const char *const *arguments);

/*
 * Where the programs themselves were, the kernel's work for them included: their innermost
 * functions, as the headline counts them. Nothing where that is what the view's own functions say.
 * 0, -ENOMEM, -ENOSPC.
 */
int report_programs(struct view *view, uint32_t session, FILE *out);

/*
 * The parts of a session's report that come from its own lines: pressure, and the account of what
 * was sampled and lost. 0 or -ENOMEM.
 */
int report_pressure(const struct store *store, const struct store_session *session, FILE *out);
int report_account(const struct store *store, const struct store_session *session, FILE *out);

#endif
