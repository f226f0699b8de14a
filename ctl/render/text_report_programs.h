/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_programs.h: the part of the text report about the programs' own functions. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_PROGRAMS_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_PROGRAMS_H

#include <stdio.h>

#include "ctl/view/view.h"

/*
 * Where the programs themselves were, the kernel's work for them included: their innermost
 * functions, as the headline counts them. Nothing where that is what the view's own functions say.
 * 0, -ENOMEM, -ENOSPC.
 */
int text_report_programs(struct view *view, uint32_t session, FILE *out);

#endif
