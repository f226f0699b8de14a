/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pinned_maps.h: opens the objects that the loader pinned in bpffs, without privilege.
 * pinned_maps_open runs before the lock-down; afterwards bpf(2) is used for map elements only.
 */
#ifndef TROCAR_CONSUMER_KERNEL_PINNED_MAPS_H
#define TROCAR_CONSUMER_KERNEL_PINNED_MAPS_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/kernel/ring.h"
#include "shared/abi/abi.h"

/* Every map of pins.def by its name: PINNED_MAP_switches. */
enum pinned_map {
#define PIN_MAP(name, mode, help) PINNED_MAP_##name,
#include "shared/abi/pins.def"
	PINNED_MAP_COUNT_
};

struct pinned_maps {
	struct abi_header abi;
	struct control *control; /* mmapped, read-write */
	struct slot *slots;	 /* mmapped, read-write, abi.slots elements of slot_stride */
	int abi_fd, control_fd, slots_fd, counters_fd, broker_fd, totals_fd, watches_fd, targets_fd,
		scope_fd, neighbours_fd, neighbour_cpus_fd, asked_fd, ends_fd;
	int unwind_pool_fd, unwind_process_fd; /* too large to stay mapped: see unwind_window.h */
	int unwind_rules_fd, unwind_files_fd, unwind_claims_fd;
	struct unwind_rule *unwind_rules;    /* mmapped, read-write; UNWIND_RULES_MAX */
	struct unwind_file *unwind_files;    /* mmapped, read-write; UNWIND_FILES_MAX */
	struct unwind_claims *unwind_claims; /* mmapped, read-write; one element */
	struct near_account *accounts_near;  /* mmapped, read-write; ACCOUNTS_NEAR */
	int rules_fd[2], cgroups_fd[2];
	int signal_fd[PINNED_MAP_COUNT_]; /* counters of signals; 0: the map has a member above */
	struct ring samples, events, errors, socket_looks, runtime_names;
	/* Pinned iterators, owned. The `_pid` iterators cover one process, the others all tasks. */
	char *tasks_path, *vmas_path, *vmas_pid_path, *ranges_path, *ranges_pid_path, *ksyms_path;
	char *bpf_code_path;
	char *watch_tree_path, *looks_path, *account_threads_path, *lock_waits_path;
	char *sockets_path, *other_ends_path;
};

/*
 * Opens every pin in `dir` and checks magic, version and hash. On failure logs one line with the
 * fault and the remedy, and leaves nothing open. 0; -EPROTO (other version or build); -ENOENT (not
 * loaded); -EACCES (not in the group); -errno.
 */
int pinned_maps_open(const char *dir, struct pinned_maps *ret_pins);
void pinned_maps_done(struct pinned_maps *pins);

/* Reads the per-CPU counters of one slot: abi.cpus_possible elements at `counters`. 0 or -errno. */
int pinned_maps_counters(const struct pinned_maps *pins, uint32_t slot,
			 struct slot_counters *counters);

/* Sums one slot's counters over all CPUs. 0 or -errno. */
int pinned_maps_slot(const struct pinned_maps *pins, uint32_t slot,
		     struct slot_counters *ret_counters);

/*
 * Sums one slot's counters of a signal over all CPUs. `map` is a per-CPU array of `words` counters.
 * 0 or -errno.
 */
int pinned_maps_signal(const struct pinned_maps *pins, enum pinned_map map, uint32_t slot,
		       size_t words, uint64_t *ret_sums);

/*
 * Does the same for a map of losses (LOSSES_OF): those of the slot, and those of no watch. Returns
 * 0 or -errno.
 */
int pinned_maps_losses(const struct pinned_maps *pins, enum pinned_map map, uint32_t slot,
		       size_t words, uint64_t *ret_sums);

/* Reads the broker's counts since the load. 0 or -errno. */
int pinned_maps_broker(const struct pinned_maps *pins, struct broker_counts *ret_counts);

/* Sums the losses outside slots over all CPUs. 0 or -errno. */
int pinned_maps_totals(const struct pinned_maps *pins, struct totals *ret_totals);

#endif
