/* SPDX-License-Identifier: BSD-2-Clause */
/* attachments.h: lists and attaches the programs of a set that attach by their section. */
#ifndef TROCAR_LOADER_ATTACHMENTS_H
#define TROCAR_LOADER_ATTACHMENTS_H

#include <stddef.h>

#include "loader/kernelset.h"

struct bpf_link;
struct bpf_program;

/* A program and the slot of the skeleton that holds its link. */
struct attachment {
	const char *name; /* of the pin */
	struct bpf_program *program;
	struct bpf_link **link;
};

/* The largest number of attachments: one per pin that is a link or an iterator. */
enum {
	ATTACHMENTS = 0
#define PIN_LINK(name, help) +1
#define PIN_ITER(name, help) +1
#include "shared/abi/pins.def"
};

/*
 * Lists the programs that attach by their section (tracepoints and iterators), if this kernel has
 * their hook. Returns their number.
 */
size_t attachments_list(const struct kernelset *set, struct attachment ret_list[ATTACHMENTS]);

/*
 * Attaches one program of the set. The caller owns the link. NULL with errno: the kernel refused
 * it.
 */
struct bpf_link *attachment_make(const struct kernelset *set, const struct attachment *a);

#endif
