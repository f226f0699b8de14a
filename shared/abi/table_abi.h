/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* table_abi.h: the part of the ABI (abi.h) that is about tables that owners share. */
#ifndef TROCAR_SHARED_ABI_TABLE_ABI_H
#define TROCAR_SHARED_ABI_TABLE_ABI_H

/* The tables that owners share: tables.def. */
enum table {
#define TABLE(id, map) TABLE_##id,
#include "shared/abi/tables.def"
#undef TABLE
	TABLES_
};

/*
 * An owner may have at most TABLE_SHARE times as many elements of a table as are free: three
 * quarters of the table while no other owner has any. So there is always space for the next owner.
 */
#define TABLE_SHARE 3

#endif
