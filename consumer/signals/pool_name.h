/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_name.h: the name of a pool: the part that the names of its threads share. Pure. */
#ifndef TROCAR_CONSUMER_SIGNALS_POOL_NAME_H
#define TROCAR_CONSUMER_SIGNALS_POOL_NAME_H

#include "shared/abi/abi.h"

/* Writes the pool name of a thread: `comm` without digits, padded with NULs. */
void pool_name_of(const char *comm, char name[COMM_BYTES]);

#endif
