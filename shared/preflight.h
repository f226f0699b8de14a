/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * preflight.h: what this machine has of what trocar needs, found out by trying and not by version
 * numbers. Each probe leaves nothing behind: descriptors are closed, and what has to be pinned is
 * pinned in a bpffs that is mounted nowhere. `trocar-loader check` and `trocar check` print the
 * same.
 */
#ifndef TROCAR_SHARED_PREFLIGHT_H
#define TROCAR_SHARED_PREFLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "shared/jsonw.h"

enum preflight_state {
	PREFLIGHT_PRESENT,
	PREFLIGHT_MISSING,
	PREFLIGHT_UNKNOWN, /* the caller is not allowed to find out */
};

struct preflight_row {
	const char *name;
	bool required;
	enum preflight_state state;
	char detail[256]; /* what was found, one line; "" when there is nothing to say */
	const char *lost; /* what goes without it */
	const char *how;  /* how to get it */
};

enum preflight_id {
#define NEED(id, level, lost, how)	      PREFLIGHT_##id,
#define NEED_CAP(id, capability, level, lost) PREFLIGHT_##id,
#include "shared/preflight.def"
#undef NEED
#undef NEED_CAP
	PREFLIGHT_COUNT_
};

struct preflight {
	struct preflight_row rows[PREFLIGHT_COUNT_]; /* by enum preflight_id */
};

/* Runs all probes; some 20 ms. */
void preflight_probe(struct preflight *ret_preflight);

/* One probe alone; for those that build on no other one: cgroup2, psi, lockdown. */
void preflight_ask(enum preflight_id id, struct preflight_row *ret_row);

/* True when nothing that is required is missing or unknown. */
bool preflight_fine(const struct preflight *p);

/* One line per need; two more under each that is missing: what is lost, how to get it. */
void preflight_print(const struct preflight *p, FILE *out);

/* One object: {"fine", "kernel", "needs": [{"name", "required", "state", "detail", "lost",
 * "how"}]}. */
void preflight_write(const struct preflight *p, struct jsonw *w, const char *key);

/*
 * What can be told about PSI from the outside, for a machine where `resource` ("cpu") was asked.
 * Split out for the tests: `error` is the errno of opening or reading /proc/pressure/cpu (0: fine),
 * compiled says whether the kernel knows PSI at all, cmdline is /proc/cmdline.
 */
void preflight_explain_psi(int error, bool compiled, const char *cmdline,
			   struct preflight_row *row);

#endif
