/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broker_operations.h: what each request of broker.def does. The safety argument of each is in the
 * .c file.
 */
#ifndef TROCAR_LOADER_BROKER_BROKER_OPERATIONS_H
#define TROCAR_LOADER_BROKER_BROKER_OPERATIONS_H

#include "loader/broker/broker_dispatch.h"
#include "loader/broker/broker_peer.h"
#include "loader/broker/broker_tables.h"

struct broker_operations {
	const char *bpf_dir; /* borrowed */
	struct broker_tables tables;
	bool loaded;			  /* tables are open */
	int cgroup_fd;			  /* the cgroup2 mount, owned; -1: there is none */
	uint64_t root_id;		  /* of the cgroup at cgroup_fd */
	struct broker_dispatch *dispatch; /* borrowed; receives the mapped counts */
	struct broker_peer *peer;	  /* borrowed */
};

/* Indexed by request; the context of each is a struct broker_operations. */
extern const struct broker_operation broker_operations_table[];

/* Opens nothing. `bpf_dir` and `peer` are borrowed. */
void broker_operations_init(const char *bpf_dir, struct broker_peer *peer,
			    struct broker_operations *ret_operations);

/*
 * Opens the cgroup2 mount and the pinned tables, and counts the start. If either fails, logs a
 * warning and continues: requests that need it are then refused with the error.
 */
void broker_operations_start(struct broker_operations *o, struct broker_dispatch *dispatch);
void broker_operations_done(struct broker_operations *o);

#endif
