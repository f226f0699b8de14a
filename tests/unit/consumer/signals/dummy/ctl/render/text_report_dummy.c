/* SPDX-License-Identifier: BSD-2-Clause */
/* The section of the dummy: how many samples it has seen. */
#include "ctl/render/sections.h"

void text_report_dummy(struct session_lines *s)
{
	session_lines_put(s, &s->session->dummies,
			  "\ndummy: what a signal that no version has counted\n"
			  "  {seen} samples\n");
}
