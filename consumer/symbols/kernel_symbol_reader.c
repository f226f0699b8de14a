/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/symbols/kernel_symbol_reader.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/symbols/symbols.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

int kernel_symbol_reader_init(struct ksyms *k, const char *path)
{
	*k = (struct ksyms){ 0 };
	if (!path)
		return 0;
	k->path = strdup(path);
	return k->path ? 0 : -ENOMEM;
}

void kernel_symbol_reader_done(struct ksyms *k)
{
	kernel_symbol_reader_forget(k);
	free(k->path);
}

/*
 * Reads the table again. The old table stays until the next trim, because the caller may hold its
 * strings.
 */
static void read_again(struct ksyms *k)
{
	struct kernel_symbols *fresh;
	bool same;

	k->read_ns = clock_mono_ns();
	if (!k->path || kernel_symbols_read(k->path, &fresh) < 0) {
		k->wait_ns = SYMBOLS_KERNEL_AGE_NS;
		return;
	}
	same = k->now && kernel_symbols_count(k->now) == kernel_symbols_count(fresh);
	k->wait_ns = same ? MIN(2 * k->wait_ns, SYMBOLS_KERNEL_AGE_NS) : SYMBOLS_KERNEL_SOON_NS;
	k->held = k->now;
	k->now = fresh;
}

static bool is_old(const struct ksyms *k, uint64_t than_ns)
{
	return k->read_ns == 0 || clock_mono_ns() - k->read_ns > than_ns;
}

const char *kernel_symbol_reader_find(struct ksyms *k, uint64_t address, uint64_t *ret_start,
				      const char **ret_module)
{
	const char *fn = NULL;

	if (k->now)
		fn = kernel_symbols_find(k->now, address, ret_start, ret_module);
	/*
	 * The kernel's own code does not move; the addresses of a module may have been used again.
	 */
	if (k->held || (fn && !**ret_module) || !is_old(k, fn ? SYMBOLS_KERNEL_AGE_NS : k->wait_ns))
		return fn;
	read_again(k);
	return k->now ? kernel_symbols_find(k->now, address, ret_start, ret_module) : NULL;
}

void kernel_symbol_reader_trim(struct ksyms *k)
{
	kernel_symbols_free(k->held);
	k->held = NULL;
}

void kernel_symbol_reader_forget(struct ksyms *k)
{
	if (k->now)
		k->read_ns = 0;
	kernel_symbols_free(k->held);
	kernel_symbols_free(k->now);
	k->held = k->now = NULL;
}

size_t kernel_symbol_reader_count(const struct ksyms *k)
{
	return (k->now ? kernel_symbols_count(k->now) : 0) +
	       (k->held ? kernel_symbols_count(k->held) : 0);
}

size_t kernel_symbol_reader_bytes(const struct ksyms *k)
{
	return (k->now ? kernel_symbols_bytes(k->now) : 0) +
	       (k->held ? kernel_symbols_bytes(k->held) : 0);
}
