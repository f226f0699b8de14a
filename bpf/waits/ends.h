/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ends.h: the table of objects that threads wait on, with the processes at the other end. `looks`
 * adds the keys while a session runs (look_seek.h), `other_ends` finds the processes.
 *
 * Only an object that a thread of a captured watch waits on is sought, so a reader cannot ask for a
 * socket or pipe of its choice. The owners of the watches share the table.
 */
#ifndef TROCAR_BPF_WAITS_ENDS_H
#define TROCAR_BPF_WAITS_ENDS_H

#include "bpf/kernel/kernel_end.h"
#include "bpf/maps/maps.h"
#include "bpf/maps/table.h"
#include "shared/abi/abi.h"

__weak MAP_FLAGS(HASH, BPF_F_NO_PREALLOC, ends, struct end_key, struct end_value, ENDS_MAX);

#endif
