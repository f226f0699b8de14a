/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table_share.h: the consumer's part of sharing the tables of the kernel side (bpf/maps/table.h):
 * the kernel side counts each element that it adds for the owner of a watch, and the consumer
 * counts the elements that it removes. Main thread only; makes no system call.
 */
#ifndef TROCAR_CONSUMER_KERNEL_TABLE_SHARE_H
#define TROCAR_CONSUMER_KERNEL_TABLE_SHARE_H

#include <stdint.h>

#include "shared/abi/abi.h"

struct pinned_maps;

/*
 * Counts one element fewer for the owner of the watch in `slot`; NO_SLOT: it belonged to none. If
 * the slot has passed to another owner in the meantime, that owner gains the element until
 * table_share_reset. Without pins->control nothing is counted.
 */
void table_share_remove(const struct pinned_maps *pins, enum table table, uint32_t slot);

/* Sets the counts of all owners to 0: the table is empty, and no program adds to it. */
void table_share_reset(const struct pinned_maps *pins, enum table table);

#endif
