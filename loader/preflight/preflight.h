/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * preflight.h: finds out which requirements of trocar this machine meets, by trying and not by
 * version numbers. Each probe leaves nothing behind: it closes its descriptors, and pins its
 * objects in a bpffs that is mounted nowhere. The verb `check` prints the result; `load` uses it to
 * explain why a machine does not qualify.
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

/* Runs all probes; takes about 20 ms. */
void preflight_probe(struct preflight *ret_preflight);

/*
 * Runs one probe. The probe may depend on the kernel's BTF but on no other probe. The caller keeps
 * `btf` (preflight_btf_done) and passes it to the next call, because reading the BTF takes 8 ms.
 */
void preflight_ask(struct preflight_btf *btf, enum preflight_id id, struct preflight_row *ret_row);

/* Returns whether all required rows are present: none is missing or unknown. */
bool preflight_fine(const struct preflight *p);

/*
 * Prints one line per need, and two more under each missing need: the loss and the way to get it.
 */
void preflight_print(const struct preflight *p, FILE *out);

/*
 * Writes one object: {"fine", "kernel", "needs": [{"name", "required", "state", "detail", "lost",
 * "how"}]}
 */
void preflight_write(const struct preflight *p, struct jsonw *w, const char *key);

/*
 * Does the verb `check`: probes and prints on stdout, as lines or as one line of JSON. Returns 1:
 * every required need is met; 0: at least one is not; -errno, logged: printing failed.
 */
int preflight_report(bool json);

/*
 * Logs each missing need after the kernel refused a load. Call it while the capabilities are still
 * held.
 */
void preflight_explain_failure(void);

/*
 * Checks the surroundings before a load. -ENOTSUP, logged: there is no cgroup2, so the consumer
 * could not watch any cgroup. Without PSI it returns 0 and logs a warning: sessions can still be
 * requested.
 */
int preflight_surroundings(void);

#endif
