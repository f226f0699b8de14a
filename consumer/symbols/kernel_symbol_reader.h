/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel_symbol_reader.h: holds the kernel's symbol table and decides when to read it again.
 * Modules and BPF programs come and go, so an address that is not in the table may belong to one
 * that came later. Symbolizer thread only.
 */
#ifndef TROCAR_CONSUMER_SYMBOLS_KERNEL_SYMBOL_READER_H
#define TROCAR_CONSUMER_SYMBOLS_KERNEL_SYMBOL_READER_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/symbols/kernel_symbols.h"

struct ksyms {
	char *path;		    /* of the iterator; owned; NULL: there is none */
	struct kernel_symbols *now; /* NULL: not read, or unreadable */
	struct kernel_symbols
		*held;	  /* the table before; its strings live until kernel_symbol_reader_trim */
	uint64_t read_ns; /* last attempt, CLOCK_MONOTONIC; 0: never */
	uint64_t wait_ns; /* least time from read_ns to the next read for an unknown address */
};

/* Initialises the reader without a table. `path` is copied and may be NULL. 0 or -ENOMEM. */
int kernel_symbol_reader_init(struct ksyms *k, const char *path);
void kernel_symbol_reader_done(struct ksyms *k);

/* As kernel_symbols_find; reads the table first when symbols_kernel says so. */
const char *kernel_symbol_reader_find(struct ksyms *k, uint64_t address, uint64_t *ret_start,
				      const char **ret_module);

/* Frees the table before, and with it its strings. */
void kernel_symbol_reader_trim(struct ksyms *k);

/* Frees all tables; the next find reads it again. */
void kernel_symbol_reader_forget(struct ksyms *k);

/* Return the symbols and the heap bytes of all tables. */
size_t kernel_symbol_reader_count(const struct ksyms *k);
size_t kernel_symbol_reader_bytes(const struct ksyms *k);

#endif
