/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* table_abi.h: the part of the ABI (abi.h) that is about tables shared by owners. */
#ifndef TROCAR_SHARED_ABI_TABLE_ABI_H
#define TROCAR_SHARED_ABI_TABLE_ABI_H

/* The tables shared by owners: tables.def. */
enum table {
#define TABLE(id, map) TABLE_##id,
#include "shared/abi/tables.def"
#undef TABLE
	TABLES_
};

/*
 * One owner may have this many times as many elements of a table as are free: three quarters of it
 * while no other has any, and the next owner always finds room.
 */
#define TABLE_SHARE 3

#endif
