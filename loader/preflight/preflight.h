/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * preflight.h: what this machine has of what trocar needs, found out by trying and not by version
 * numbers. Each probe leaves nothing behind: descriptors are closed, and what has to be pinned is
 * pinned in a bpffs that is mounted nowhere. The verb `check` prints it, and `load` says by it why
 * a machine does not fit.
 */
#ifndef TROCAR_LOADER_PREFLIGHT_PREFLIGHT_H
#define TROCAR_LOADER_PREFLIGHT_PREFLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "loader/preflight/preflight_row.h"
#include "shared/json/jsonw.h"

enum preflight_id {
#define NEED(id, level, lost, how)	      PREFLIGHT_##id,
#define NEED_CAP(id, capability, level, lost) PREFLIGHT_##id,
#include "loader/preflight/preflight.def"
#undef NEED
#undef NEED_CAP
	PREFLIGHT_COUNT_
};

struct preflight {
	struct preflight_row rows[PREFLIGHT_COUNT_]; /* by enum preflight_id */
};

/* Runs all probes; some 20 ms. */
void preflight_probe(struct preflight *ret_preflight);

/* One probe alone, for rows whose probe builds on no other but the kernel's BTF. */
void preflight_ask(enum preflight_id id, struct preflight_row *ret_row);

/* True when nothing that is required is missing or unknown. */
bool preflight_fine(const struct preflight *p);

/* One line per need; two more under each that is missing: what is lost, how to get it. */
void preflight_print(const struct preflight *p, FILE *out);

/*
 * One object: {"fine", "kernel", "needs": [{"name", "required", "state", "detail", "lost", "how"}]}
 */
void preflight_write(const struct preflight *p, struct jsonw *w, const char *key);

/*
 * The verb `check`: probes and prints on stdout, as lines or as one line of JSON. 1: nothing that
 * is required is missing; 0: something is; -errno, logged: it could not be printed.
 */
int preflight_report(bool json);

/* After a load that the kernel refused, its capabilities still held: logs each missing need. */
void preflight_explain_failure(void);

/*
 * Before a load: -ENOTSUP, logged, without cgroup2, where the consumer could watch nothing. Without
 * PSI it returns 0 and logs a warning: sessions can still be requested.
 */
int preflight_surroundings(void);

#endif
