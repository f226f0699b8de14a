/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table_share.h: the consumer's part of sharing the tables of the kernel side (bpf/maps/table.h):
 * that counts each element that it makes for the owner of a watch, and the consumer counts those
 * that it removes. Main thread only; makes no system call.
 */
#ifndef TROCAR_CONSUMER_KERNEL_TABLE_SHARE_H
#define TROCAR_CONSUMER_KERNEL_TABLE_SHARE_H

#include <stdint.h>

#include "shared/abi/abi.h"

struct pinned_maps;

/*
 * Counts one element less for the owner of the watch in `slot`; NO_SLOT: it was for none. Where the
 * slot went to another owner meanwhile, that one gains it until table_share_reset. Without
 * pins->control nothing is counted.
 */
void table_share_remove(const struct pinned_maps *pins, enum table table, uint32_t slot);

/* Counts no element for any owner: the table is empty, and no program adds to it. */
void table_share_reset(const struct pinned_maps *pins, enum table table);

#endif
