/* SPDX-License-Identifier: BSD-2-Clause */
/* broker_pins.h: what the broker uses of the loaded set. */
#ifndef TROCAR_LOADER_BROKER_PINS_H
#define TROCAR_LOADER_BROKER_PINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi.h"
#include "shared/broker.h"

/* One program of a signal, in the order of probes.def. */
struct broker_probe {
	uint32_t signal; /* enum signal */
	uint32_t id;	 /* the kernel's number of it */
	int fd;		 /* owned */
};

struct broker_pins {
	int sampler_fd, watches_fd, targets_fd; /* owned */
	int scope_fd;				/* owned; -1: everything may be looked at */
	struct broker_probe probes[BROKER_DESCRIPTORS_MAX];
	size_t n_probes;
	struct broker_counts *counts; /* mmapped, read-write */
	uint32_t hz;		      /* of the load */
};

#define BROKER_PINS_NONE       \
	((struct broker_pins){ \
		.sampler_fd = -1, .watches_fd = -1, .targets_fd = -1, .scope_fd = -1 })

/*
 * Opens the set that stands in `dir`. -ENOENT: nothing is loaded; -EPROTO: another version's; else
 * what bpf(2) and mmap(2) say. Nothing is open then.
 */
int broker_pins_open(const char *dir, struct broker_pins *ret_pins);
void broker_pins_close(struct broker_pins *pins);

/* Does the map `fd` (watches, targets) have this key? */
bool broker_pins_has(int fd, const void *key);

#endif
