/* SPDX-License-Identifier: BSD-2-Clause */
/* kernelset.h: one set of maps, programs, links and samplers while it is in the loader's hands. */
#ifndef TROCAR_LOADER_KERNELSET_H
#define TROCAR_LOADER_KERNELSET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "loader/options.h"
#include "loader/sampler_attach.h"

struct trocar;

struct kernelset {
	struct trocar *skeleton; /* owned */
	struct samplers samplers;
	bool vma_open_coded;
	bool page_walk; /* bpf/page.bpf.c found what it looks for */
};

/*
 * Sizes the maps by `o`, chooses the programs this kernel can have, and loads them. libbpf tells
 * the verifier's log whole on stderr when it refuses. Needs CAP_BPF and CAP_PERFMON. 0 or -errno.
 */
int kernelset_load(const struct options *o, struct kernelset *ret_set);

/*
 * Attaches the discovery programs, with --always oncpu a sampler per online CPU, makes the
 * iterators, writes `abi`.
 * *ret_what names what failed. 0 or -errno.
 */
int kernelset_attach(struct kernelset *set, const struct options *o, const char **ret_what);

/* Pins all of it below `dir`/new with the modes of shared/pins.def. 0 or -errno; *ret_what as
 * above. */
int kernelset_pin(const struct kernelset *set, const char *dir, gid_t gid, const char **ret_what);

/* Lets go of all descriptors: what is not pinned is gone. */
void kernelset_done(struct kernelset *set);

#endif
