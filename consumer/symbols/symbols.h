/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * symbols.h: from a file and an offset to a function name. Modules are shared between processes and
 * sessions and are kept by (device, inode, path); reading a file happens only in symbols_user, which
 * the symbolizer's own thread calls: never the drain. Files are foreign and hostile: everything read
 * from them is bounded, the file is a regular file of the expected inode, and its build-id is checked.
 */
#ifndef TROCAR_CONSUMER_SYMBOLS_H
#define TROCAR_CONSUMER_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi.h"

/* One mapped file, or one that only a build-id is known of. Fields above the line never change. */
struct module {
	uint64_t device; /* kernel's dev_t; 0 with inode 0 when only the build-id is known */
	uint64_t inode;
	char *path;	 /* as mapped; "" when only the build-id is known; "[vdso]", "[anon]" */
	bool anonymous;	 /* executable memory without a file */
	/* ---- filled in by the symbolizer thread, under its lock */
	uint8_t build_id[64];
	uint8_t build_id_bytes; /* 0 when the file has none or was not read */
	const char *unreadable; /* why the file's names are not known, NULL when they are */
	struct elf_symbols *symbols;
	bool loaded;
};

struct symbols;

struct symbols_stats {
	size_t modules;
	size_t files_read;
	size_t symbols;
	size_t bytes;	   /* memory of tables */
	uint64_t unnamed;  /* lookups without a name */
	uint64_t lookups;
};

/*
 * A cache that holds at most max_bytes of tables (least recently used files go first).
 * ksyms_path is the pinned iterator, or NULL. 0 or -ENOMEM.
 */
int symbols_new(size_t max_bytes, const char *ksyms_path, struct symbols **ret_symbols);
void symbols_free(struct symbols *s);

/*
 * Finds or makes the module; any thread; the pointer stays valid until symbols_free (modules are
 * bounded by `modules_max` = 65536; -ENOSPC beyond). Path is copied.
 */
int symbols_module(struct symbols *s, uint64_t device, uint64_t inode, const char *path,
		   bool anonymous, struct module **ret_module);

/* The same for a frame of which the kernel told only the build-id (20 bytes). */
int symbols_module_by_build_id(struct symbols *s, const uint8_t build_id[BUILD_ID_BYTES],
			       struct module **ret_module);

/* What a lookup yields; strings live until the next symbols_trim. */
struct symbol_name {
	const char *fn;	   /* NULL when not known */
	const char *why;   /* when fn is NULL: the reason, a stable word such as "no_symbol" */
	uint64_t offset_in_fn;
};

/*
 * Names the function at file offset `offset` of `m`; reads the file on first use. Symbolizer thread
 * only. `caller` is true for return addresses (the call stands before offset). 0 or -ENOENT with
 * ret_name->why set.
 */
int symbols_user(struct symbols *s, struct module *m, uint64_t offset, bool caller,
		 struct symbol_name *ret_name);

/*
 * Names a kernel address from the ksyms iterator (read on first use, again after `max_age_ns`).
 * *ret_module is "" for the kernel itself, else "[module]" without brackets. Symbolizer thread only.
 */
int symbols_kernel(struct symbols *s, uint64_t address, struct symbol_name *ret_name,
		   const char **ret_module);

/* Gives memory above the bound back; symbolizer thread, between sessions. */
void symbols_trim(struct symbols *s);

/* Gives the kernel's table back too (idle for a while); symbolizer thread. */
void symbols_trim_kernel(struct symbols *s);

void symbols_stats(struct symbols *s, struct symbols_stats *ret_stats);

#endif
