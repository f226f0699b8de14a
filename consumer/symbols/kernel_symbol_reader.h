/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel_symbol_reader.h: holds the kernel's symbol table and decides when to read it again.
 * Modules and BPF programs are loaded and unloaded, so an address that is not in the table may
 * belong to a newer one. Code of a BPF program has a name only if that program is loaded now and
 * was loaded before the first sample that is being named: otherwise it may have been another
 * program's. Symbolizer thread only.
 */
#ifndef TROCAR_CONSUMER_SYMBOLS_KERNEL_SYMBOL_READER_H
#define TROCAR_CONSUMER_SYMBOLS_KERNEL_SYMBOL_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/symbols/bpf_code.h"
#include "consumer/symbols/kernel_symbols.h"

struct ksyms {
	char *path;		    /* of the iterator; owned; NULL: there is none */
	struct kernel_symbols *now; /* NULL: not read, or unreadable */
	struct kernel_symbols
		*held;	  /* the previous table; its strings live until kernel_symbol_reader_trim */
	uint64_t now_ns;  /* when the reading of `now` began, CLOCK_MONOTONIC */
	uint64_t read_ns; /* last attempt, CLOCK_MONOTONIC; 0: never */
	uint64_t wait_ns; /* least time between read_ns and the next read for an unknown address */
	char *bpf_path;	  /* of the iterator bpf_code; owned; NULL: there is none */
	struct bpf_code bpf; /* as read since the last trim */
	bool bpf_read;	     /* it was read, or could not be read */
	uint64_t since_ns;   /* the first sample that is being named, CLOCK_MONOTONIC */
};

/*
 * Initialises the reader without a table. `path` is copied and may be NULL. Returns 0 or -ENOMEM.
 * Release with kernel_symbol_reader_done.
 */
int kernel_symbol_reader_init(struct ksyms *k, const char *path);
void kernel_symbol_reader_done(struct ksyms *k);

/* Sets the path of the iterator bpf_code, which is copied. Returns 0 or -ENOMEM. */
int kernel_symbol_reader_set_bpf(struct ksyms *k, const char *path);

/* Like kernel_symbols_find; first reads the table if the rules of symbols_kernel require it. */
const char *kernel_symbol_reader_find(struct ksyms *k, uint64_t address, uint64_t *ret_start,
				      const char **ret_module);

/* Frees the previous table with its strings; BPF programs are read again when needed. */
void kernel_symbol_reader_trim(struct ksyms *k);

/* Frees all tables; the next find reads them again. */
void kernel_symbol_reader_forget(struct ksyms *k);

/* Return the number of symbols and the heap bytes of all tables. */
size_t kernel_symbol_reader_count(const struct ksyms *k);
size_t kernel_symbol_reader_bytes(const struct ksyms *k);

#endif
