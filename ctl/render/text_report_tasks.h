/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report_tasks.h: the part of the text report about the threads with shown stacks. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_TASKS_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_TASKS_H

#include <stdio.h>

#include "ctl/view/view.h"

/*
 * Prints the threads of the view, one row per name and process, with their time in the phases of
 * VIEW_PHASES. 0, -ENOMEM, -ENOSPC.
 */
int text_report_tasks(const struct view *view, FILE *out);

#endif
