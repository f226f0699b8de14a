/* SPDX-License-Identifier: BSD-2-Clause */
/* preflight_parts.h: what the parts of the preflight share; for preflight*.c only. */
#ifndef TROCAR_SHARED_PREFLIGHT_PARTS_H
#define TROCAR_SHARED_PREFLIGHT_PARTS_H

#include <stdio.h>

#include "shared/kbtf.h"
#include "shared/preflight.h"

/* What several probes share; a probe leaves here what a later one builds on. */
struct preflight_probes {
	struct kbtf btf; /* data NULL without */
	int btf_error;
	int prog_fd;  /* a perf_event program, -1 without */
	int bpffs_fd; /* a bpffs that is mounted nowhere, -1 without */
	int perf_link_fd;
};

typedef void (*preflight_call)(struct preflight_probes *p, struct preflight_row *row);

/* By enum preflight_id; NULL where the row is another part's. */
extern const preflight_call preflight_kernel_calls[PREFLIGHT_COUNT_];
extern const preflight_call preflight_system_calls[PREFLIGHT_COUNT_];

#define PREFLIGHT_SAY(row, ...) snprintf((row)->detail, sizeof((row)->detail), __VA_ARGS__)

void preflight_present(struct preflight_row *row);

/* Not there, or not for us: EPERM and EACCES for a process that is not root prove nothing. */
void preflight_failed(struct preflight_row *row, int error);

/* Is the capability permitted to this process? */
void preflight_capability(int capability, struct preflight_row *row);

#endif
