/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * preflight.h: finds out, by trying and not by version numbers, which of trocar's needs this
 * machine meets. Each probe leaves nothing behind: it closes its descriptors, and pins its objects
 * in a bpffs that is mounted nowhere. The verb `check` prints the result; `load` uses it to explain
 * why a machine does not fit.
 */
#ifndef TROCAR_LOADER_PREFLIGHT_PREFLIGHT_H
#define TROCAR_LOADER_PREFLIGHT_PREFLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "loader/preflight/preflight_btf.h"
#include "loader/preflight/preflight_row.h"

struct jsonw;

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

/*
 * Runs one probe, for a row with a probe that builds on no other but the kernel's BTF. `btf` stays
 * the caller's (preflight_btf_done): what one probe has read the next one need not read again,
 * which takes 8 ms.
 */
void preflight_ask(struct preflight_btf *btf, enum preflight_id id, struct preflight_row *ret_row);

/* Returns whether nothing that is required is missing or unknown. */
bool preflight_fine(const struct preflight *p);

/*
 * Prints one line per need, and two more under each that is missing: what is lost, how to get it.
 */
void preflight_print(const struct preflight *p, FILE *out);

/*
 * Writes one object: {"fine", "kernel", "needs": [{"name", "required", "state", "detail", "lost",
 * "how"}]}
 */
void preflight_write(const struct preflight *p, struct jsonw *w, const char *key);

/*
 * Does the verb `check`: probes and prints on stdout, as lines or as one line of JSON. Returns 1:
 * nothing that is required is missing; 0: something is; -errno, logged: it could not be printed.
 */
int preflight_report(bool json);

/*
 * Logs each missing need after the kernel refused a load. Call it while the capabilities are still
 * held.
 */
void preflight_explain_failure(void);

/*
 * Checks the surroundings before a load. -ENOTSUP, logged: there is no cgroup2, so the consumer
 * could watch nothing. Without PSI it returns 0 and logs a warning: sessions can still be
 * requested.
 */
int preflight_surroundings(void);

#endif
