/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sections.h: the sections of the text report of one session. Each is text_report_NAME of
 * text_report_NAME.c, and prints nothing if the session has no lines for it.
 */
#ifndef TROCAR_CTL_RENDER_SECTIONS_H
#define TROCAR_CTL_RENDER_SECTIONS_H

#include "ctl/render/session_lines.h"

#define SECTION(function) void function(struct session_lines *s);
#include "ctl/render/sections.def"
#undef SECTION

/* Prints the quality without what is missing and the advice. */
void text_report_head_verdict(struct session_lines *s);

/* Prints the attempted, emitted and lost counts, by signal: the last section, after the stacks. */
void text_report_lines_ledger(struct session_lines *s);

/* A form (member_text.h) that names the cgroup of a line `neighbour`. */
#define SECTIONS_NEIGHBOUR                                                       \
	"[neighbour?{neighbour}[neighbour_uid? (uid {neighbour_uid:n}"           \
	"[neighbour_cgroups?, {neighbour_cgroups:n} cgroups])]"                  \
	"[!neighbour_uid?[neighbour_cgroups? ({neighbour_cgroups:n} cgroups)]]]" \
	"[!neighbour?[name?(no path[name_unverified?, unverified name]) {name}]" \
	"[!name?(a cgroup without path)]]"

#endif
