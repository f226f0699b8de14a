/* SPDX-License-Identifier: BSD-2-Clause */
/* kernelset.h: one set of maps, programs, links and samplers, while the loader holds it. */
#ifndef TROCAR_LOADER_KERNELSET_H
#define TROCAR_LOADER_KERNELSET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "loader/options.h"
#include "loader/programs.h"
#include "loader/sampler_attach.h"

struct trocar;

struct kernelset {
	struct trocar *skeleton; /* owned: the maps and the links */
	struct programs programs;
	struct samplers samplers;
	bool vma_open_coded;
	bool page_walk;	    /* bpf/mappings/page_layout.bpf.c can walk page tables */
	bool kernel_rows;   /* bpf/stack/kernel_stack.h can walk the kernel's stacks */
	bool sched_info;    /* the kernel keeps the words that bpf/time/account.h reads */
	bool socket_cgroup; /* sockets know their cgroup */
	bool oom_victims;   /* the kernel reports its victim to bpf/memory/oom.bpf.c */
	bool dirty_pauses;  /* the kernel reports throttled writers to bpf/memory/reclaim.bpf.c in a
			       known form */
};

/*
 * Sizes the maps by `o`, chooses the programs that this kernel can load, and loads them. When the
 * kernel refuses a program, libbpf prints the verifier's log on stderr. Needs CAP_BPF and
 * CAP_PERFMON. 0 or -errno.
 */
int kernelset_load(const struct options *o, struct kernelset *ret_set);

/*
 * Attaches the discovery programs and, with --always oncpu, a sampler per online CPU; creates the
 * iterators; writes the map `abi`. *ret_what names the step that failed. 0 or -errno.
 */
int kernelset_attach(struct kernelset *set, const struct options *o, const char **ret_what);

/*
 * Pins the set below `dir`/new with the modes of shared/abi/pins.def. 0 or -errno; *ret_what as
 * above.
 */
int kernelset_pin(const struct kernelset *set, const char *dir, gid_t gid, const char **ret_what);

/* Closes all descriptors: the kernel frees objects that are not pinned. */
void kernelset_done(struct kernelset *set);

#endif
