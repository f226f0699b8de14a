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
	free(k->bpf_path);
}

int kernel_symbol_reader_set_bpf(struct ksyms *k, const char *path)
{
	free(k->bpf_path);
	k->bpf_path = strdup(path);
	return k->bpf_path ? 0 : -ENOMEM;
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
	k->now_ns = k->read_ns;
}

static bool is_old(const struct ksyms *k, uint64_t than_ns)
{
	return k->read_ns == 0 || clock_mono_ns() - k->read_ns > than_ns;
}

/* Returns the code of a BPF program at `address` as it is now, or NULL. */
static const struct bpf_code_record *find_program(struct ksyms *k, uint64_t address)
{
	if (!k->bpf_read && k->bpf_path && bpf_code_read(k->bpf_path, &k->bpf) < 0)
		k->bpf = (struct bpf_code){ 0 };
	k->bpf_read = true;
	return bpf_code_find(&k->bpf, address);
}

/*
 * Names a BPF program that existed before the first sample: by the symbol of its start, in a table
 * that is no older.
 */
static const char *name_program(struct ksyms *k, const struct bpf_code_record *program,
				uint64_t *ret_start, const char **ret_module)
{
	const char *module, *fn;
	uint64_t start;

	if (program->load_ns > k->since_ns)
		return NULL;
	if (k->now_ns <= program->load_ns && !k->held)
		read_again(k);
	if (!k->now || k->now_ns <= program->load_ns)
		return NULL;
	fn = kernel_symbols_find(k->now, program->start, &start, &module);
	if (!fn || start != program->start || strcmp(module, KERNEL_BPF_MODULE) != 0)
		return NULL;
	*ret_start = start;
	*ret_module = module;
	return fn;
}

/* Like kernel_symbols_find, but for code of BPF programs. */
static const char *find_fixed(const struct ksyms *k, uint64_t address, uint64_t *ret_start,
			      const char **ret_module)
{
	const char *module, *fn;

	fn = k->now ? kernel_symbols_find(k->now, address, ret_start, &module) : NULL;
	if (!fn || strcmp(module, KERNEL_BPF_MODULE) == 0)
		return NULL;
	*ret_module = module;
	return fn;
}

const char *kernel_symbol_reader_find(struct ksyms *k, uint64_t address, uint64_t *ret_start,
				      const char **ret_module)
{
	const char *fn = find_fixed(k, address, ret_start, ret_module);
	const struct bpf_code_record *program = fn ? NULL : find_program(k, address);

	if (program)
		return name_program(k, program, ret_start, ret_module);
	/* The kernel's own code does not move; the addresses of a module may have been reused. */
	if (k->held || (fn && !**ret_module) || !is_old(k, fn ? SYMBOLS_KERNEL_AGE_NS : k->wait_ns))
		return fn;
	read_again(k);
	return find_fixed(k, address, ret_start, ret_module);
}

void kernel_symbol_reader_trim(struct ksyms *k)
{
	kernel_symbols_free(k->held);
	k->held = NULL;
	bpf_code_done(&k->bpf);
	k->bpf_read = false;
}

void kernel_symbol_reader_forget(struct ksyms *k)
{
	kernel_symbol_reader_trim(k);
	if (k->now)
		k->read_ns = 0;
	kernel_symbols_free(k->now);
	k->now = NULL;
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
