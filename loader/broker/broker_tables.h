/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broker_tables.h: opens the parts of the loaded set that the broker uses: maps, programs and
 * counts.
 */
#ifndef TROCAR_LOADER_BROKER_BROKER_TABLES_H
#define TROCAR_LOADER_BROKER_BROKER_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi/abi.h"
#include "shared/broker/broker.h"

/* One program of a signal, in the order of probes.def. */
struct broker_probe {
	uint32_t signal; /* enum signal */
	uint32_t id;	 /* the kernel's id of the program */
	int fd;		 /* owned */
};

struct broker_tables {
	int sampler_fd, watches_fd, targets_fd; /* owned */
	int scope_fd;				/* owned; -1: there is no scope */
	struct broker_probe probes[BROKER_DESCRIPTORS_MAX];
	size_t n_probes;
	struct broker_counts *counts; /* mmapped, read-write */
	uint32_t hz;		      /* of the load */
};

#define BROKER_TABLES_NONE       \
	((struct broker_tables){ \
		.sampler_fd = -1, .watches_fd = -1, .targets_fd = -1, .scope_fd = -1 })

/*
 * Opens the set that is pinned in `dir`. -ENOENT: nothing is loaded; -EPROTO: another version or
 * build loaded it; else the error of bpf(2) or mmap(2). On failure nothing is open.
 */
int broker_tables_open(const char *dir, struct broker_tables *ret_tables);
void broker_tables_close(struct broker_tables *tables);

/* Returns whether the map `fd` (watches, targets) has this key. */
bool broker_tables_has(int fd, const void *key);

#endif
