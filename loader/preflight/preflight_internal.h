/* SPDX-License-Identifier: BSD-2-Clause */
/* preflight_internal.h: declarations shared by preflight*.c. */
#ifndef TROCAR_LOADER_PREFLIGHT_PREFLIGHT_INTERNAL_H
#define TROCAR_LOADER_PREFLIGHT_PREFLIGHT_INTERNAL_H

#include "loader/preflight/preflight.h"
#include "loader/preflight/preflight_btf.h"

/* Results of a probe that later probes use. */
struct preflight_probes {
	struct preflight_btf *btf; /* not owned */
	int prog_fd;		   /* a perf_event program, -1: none */
	int bpffs_fd;		   /* a bpffs that is mounted nowhere, -1: none */
	int perf_link_fd;
};

#define PREFLIGHT_TOLD (-1) /* a probe has set the state of its row itself */

struct preflight_probe {
	/* Returns 0: present; an errno for preflight_row_failed; or PREFLIGHT_TOLD. */
	int (*call)(struct preflight_probes *p, const struct preflight_probe *probe,
		    struct preflight_row *row);
	const char *name; /* of a type or function in the kernel's BTF; NULL: it needs no BTF */
};

/* Probes by enum preflight_id; .call is NULL for a row of another file. */
extern const struct preflight_probe preflight_kernel_probes[PREFLIGHT_COUNT_];
extern const struct preflight_probe preflight_system_probes[PREFLIGHT_COUNT_];

/* Fills in whether the capability is permitted to this process. Returns as a probe. */
int preflight_system_capability(int capability, struct preflight_row *row);

/* Fills in whether /proc hides processes from the consumer; `mounts` is /proc/self/mounts. */
void preflight_system_explain_proc(const char *mounts, struct preflight_row *row);

/*
 * Fills in why PSI does not work. `error` is the errno of opening or reading /proc/pressure/cpu (0:
 * it can be read), `compiled` is whether the kernel is built with PSI, `cmdline` is /proc/cmdline.
 */
void preflight_system_explain_psi(int error, bool compiled, const char *cmdline,
				  struct preflight_row *row);

#endif
