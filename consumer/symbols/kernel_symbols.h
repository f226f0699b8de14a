/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel_symbols.h: the text symbols of the kernel and its modules, as the `ksyms` iterator writes
 * them (struct ksym_record), in a compact table: about 5 MiB for 120,000 symbols. A symbol ends
 * where the next one starts. The kernel does not report the end of a module's last symbol: it ends
 * after KERNEL_LAST_BYTES. For a BPF program the table has the first byte only, because unlisted
 * programs may be between the listed ones (bpf_code.h). Any thread may use a table, because it
 * never changes after the read. The record parser is fuzzed (tests/fuzz/symbols/ksyms.c).
 */
#ifndef TROCAR_CONSUMER_SYMBOLS_KERNEL_SYMBOLS_H
#define TROCAR_CONSUMER_SYMBOLS_KERNEL_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#define KERNEL_BPF_MODULE   "bpf" /* of programs, as kernel/kallsyms.c calls it */
#define KERNEL_LAST_BYTES   4096
#define KERNEL_NAME_BYTES   512 /* KSYM_NAME_LEN, NUL included */
#define KERNEL_MODULE_BYTES 64	/* MODULE_NAME_LEN, rounded up */
#define KERNEL_SYMBOLS_MAX  1000000u
#define KERNEL_STRINGS_MAX  (64u << 20)
/* Ranges of 4 GiB that have symbols: 1 on x86-64, few on arm64. */
#define KERNEL_WINDOWS_MAX 64

struct kernel_symbols;

/*
 * Reads the iterator (or a file of such records) at `path`. Returns 0; -ENODATA if it has no symbol
 * with an address (kptr_restrict); -EBADMSG (malformed records); -EFBIG (KERNEL_SYMBOLS_MAX,
 * KERNEL_STRINGS_MAX or KERNEL_WINDOWS_MAX exceeded); -ENOMEM; -errno of open(2) and read(2).
 * Release with kernel_symbols_free.
 */
int kernel_symbols_read(const char *path, struct kernel_symbols **ret_symbols);

/* As kernel_symbols_read, from memory. */
int kernel_symbols_parse(const uint8_t *data, size_t bytes, struct kernel_symbols **ret_symbols);
void kernel_symbols_free(struct kernel_symbols *k);

/*
 * Returns the name of the symbol that contains `address`, with its start and its module ("" for the
 * kernel itself); NULL if there is none. The strings live as long as the table.
 */
const char *kernel_symbols_find(const struct kernel_symbols *k, uint64_t address,
				uint64_t *ret_start, const char **ret_module);

size_t kernel_symbols_count(const struct kernel_symbols *k);

/* Returns the bytes of heap. */
size_t kernel_symbols_bytes(const struct kernel_symbols *k);

#endif
