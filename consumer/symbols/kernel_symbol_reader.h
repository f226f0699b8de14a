/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel_symbol_reader.h: the kernel's table and when to read it again. Modules and BPF programs
 * come and go, so an address that it does not know may be one that came since. Symbolizer thread
 * only.
 */
#ifndef TROCAR_CONSUMER_KSYMS_H
#define TROCAR_CONSUMER_KSYMS_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/symbols/kernel_symbols.h"

struct ksyms {
	char *path;		    /* owned; NULL: there is no iterator */
	struct kernel_symbols *now; /* NULL: not read, or not readable */
	struct kernel_symbols
		*held;	  /* the one before: its strings live until kernel_symbol_reader_trim */
	uint64_t read_ns; /* last try, CLOCK_MONOTONIC; 0: never */
	uint64_t wait_ns; /* from then until the next for an unknown address */
};

/* `path` is copied and may be NULL. 0 or -ENOMEM. */
int kernel_symbol_reader_init(struct ksyms *k, const char *path);
void kernel_symbol_reader_done(struct ksyms *k);

/* As kernel_symbols_find; reads the table as symbols_kernel says. */
const char *kernel_symbol_reader_find(struct ksyms *k, uint64_t address, uint64_t *ret_start,
				      const char **ret_module);

/* Ends the life of strings of the table before. */
void kernel_symbol_reader_trim(struct ksyms *k);

/* Forgets all; it is read again at the next find. */
void kernel_symbol_reader_forget(struct ksyms *k);

/* Symbols and bytes of heap of all tables. */
size_t kernel_symbol_reader_count(const struct ksyms *k);
size_t kernel_symbol_reader_bytes(const struct ksyms *k);

#endif
