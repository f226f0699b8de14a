// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * orc.bpf.c: finds the kernel's own unwind tables (orc.h). The loader reads the iterator
 * `orc_symbols` once and then runs `orc_learn`. Two more programs follow the loading and unloading
 * of modules.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/stack/orc.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define SYMBOL_BYTES 32 /* longer than each wanted symbol */
#define MODULES_MAX  4096

/* Stores the value of the symbol with this name. */
#define TAKE_SYMBOL(text, place)                            \
	do {                                                \
		if (!bpf_strncmp(name, sizeof(text), text)) \
			(place) = ksym->value;              \
	} while (0)

/* Symbols arrive in the order of their addresses: the next one ends the function. */
static __always_inline void end_function(struct orc_function *f, __u64 next)
{
	if (f->begin && !f->end && next > f->begin)
		f->end = next;
}

SEC("iter/ksym")
int orc_symbols(struct bpf_iter__ksym *ctx)
{
	struct orc_areas *areas = orc_areas_get();
	struct kallsym_iter *ksym = ctx->ksym;
	char name[SYMBOL_BYTES], first;

	if (!areas || !ksym || ksym->module_name[0])
		return 0;
	end_function(&areas->fault, ksym->value);
	end_function(&areas->fred, ksym->value);
	first = ksym->name[0];
	if (first != '_' && first != 'a' && first != 'r' && first != 'm' && first != 's')
		return 0;
	if (bpf_probe_read_kernel_str(name, sizeof(name), ksym->name) < 0)
		return 0;
	TAKE_SYMBOL("_stext", areas->items[0].begin);
	TAKE_SYMBOL("_etext", areas->items[0].end);
	TAKE_SYMBOL("__start_orc_unwind_ip", areas->items[0].ips);
	TAKE_SYMBOL("__stop_orc_unwind_ip", areas->ips_end);
	TAKE_SYMBOL("__start_orc_unwind", areas->items[0].rows);
	TAKE_SYMBOL("arch_rethook_trampoline", areas->hooks[0]);
	TAKE_SYMBOL("return_to_handler", areas->hooks[1]);
	TAKE_SYMBOL("modules", areas->modules);
	TAKE_SYMBOL("schedule", areas->function);
	TAKE_SYMBOL("asm_exc_page_fault", areas->fault.begin);
	TAKE_SYMBOL("asm_fred_entrypoint_user", areas->fred.begin);
	return 0;
}

/* A search for a module by the begin of its text; 0: a free element. */
struct module_place {
	const struct orc_areas *areas;
	__u64 begin;
	__u32 found; /* its index plus 1 */
};

static long try_place(__u32 i, struct module_place *p)
{
	/* Element 0 is the kernel itself, not a module. */
	if (i + 1 >= READ_WORD(p->areas->count))
		return 1;
	if (p->areas->items[(i + 1) & (ORC_AREAS - 1)].begin != p->begin)
		return 0;
	p->found = i + 2;
	return 1;
}

static __always_inline struct orc_area *find_place(struct orc_areas *areas, __u64 begin)
{
	struct module_place p = { .areas = areas, .begin = begin };

	bpf_loop(ORC_AREAS, try_place, &p, 0);
	return p.found ? &areas->items[(p.found - 1) & (ORC_AREAS - 1)] : 0;
}

static __always_inline void read_text(const struct module *m, struct orc_area *a)
{
	const struct module___layout *older = (const void *)m;

	if (bpf_core_field_exists(m->mem)) {
		a->begin = (__u64)BPF_CORE_READ(m, mem[0].base);
		a->end = a->begin + BPF_CORE_READ(m, mem[0].size);
	} else {
		a->begin = (__u64)BPF_CORE_READ(older, core_layout.base);
		a->end = a->begin + BPF_CORE_READ(older, core_layout.text_size);
	}
}

/*
 * Adds the tables of a module if there is space. Otherwise stacks with its frames are left to
 * bpf_get_stack.
 */
static __noinline int add_module(const struct module *m)
{
	struct orc_areas *areas = orc_areas_get();
	struct orc_area fresh = {}, *place;

	if (!areas || !READ_WORD(areas->count) || !bpf_core_field_exists(m->arch.orc_unwind))
		return 0;
	read_text(m, &fresh);
	fresh.ips = (__u64)BPF_CORE_READ(m, arch.orc_unwind_ip);
	fresh.rows = (__u64)BPF_CORE_READ(m, arch.orc_unwind);
	fresh.count = BPF_CORE_READ(m, arch.num_orcs);
	if (!fresh.begin || !fresh.count)
		return 0;
	place = find_place(areas, 0);
	if (!place && areas->count < ORC_AREAS)
		place = &areas->items[areas->count++ & (ORC_AREAS - 1)];
	if (place)
		*place = fresh;
	return 0;
}

SEC("tp_btf/module_load")
int BPF_PROG(on_module_load, struct module *m)
{
	add_module(m);
	/* Earlier lookups of these addresses found no rows. */
	orc_forget_rows();
	return 0;
}

SEC("tp_btf/module_free")
int BPF_PROG(on_module_free, struct module *m)
{
	struct orc_areas *areas = orc_areas_get();
	struct orc_area gone = {}, *place;

	if (!areas)
		return 0;
	read_text(m, &gone);
	place = gone.begin ? find_place(areas, gone.begin) : 0;
	if (place)
		__builtin_memset(place, 0, sizeof(*place));
	orc_forget_rows();
	return 0;
}

/* A walk over the list of modules. */
struct module_list {
	__u64 head, next;
};

static long take_module(__u32 i, struct module_list *list)
{
	const struct list_head *next = (const void *)list->next;

	if (!list->next || list->next == list->head)
		return 1;
	add_module((const void *)(list->next - bpf_core_field_offset(struct module, list)));
	list->next = (__u64)BPF_CORE_READ(next, next);
	return 0;
}

/*
 * Determines the register numbers of this kernel: at the first instruction of a C function, the
 * caller's stack pointer is 8 bytes above SP, and bp still has the caller's value. Returns false if
 * the numbers are not known ones.
 */
static __always_inline bool learn_numbers(struct orc_areas *areas)
{
	const struct orc_entry *entry;
	__u32 sp;

	if (!areas->function)
		return false;
	entry = (const void *)find_entry(areas, &areas->items[0], areas->function);
	if (BPF_CORE_READ(entry, sp_offset) != 8 ||
	    BPF_CORE_READ_BITFIELD_PROBED(entry, bp_reg) != ORC_REG_UNDEFINED)
		return false;
	sp = BPF_CORE_READ_BITFIELD_PROBED(entry, sp_reg);
	areas->numbers.sp = sp;
	areas->numbers.prev_sp = sp == ORC_REG_SP ? ORC_REG_PREV_SP : ORC_REG_PREV_SP_7_3;
	areas->numbers.bp_indirect =
		sp == ORC_REG_SP ? ORC_REG_BP_INDIRECT : ORC_REG_BP_INDIRECT_7_3;
	return sp == ORC_REG_SP || sp == ORC_REG_SP_7_3;
}

/*
 * Enables the tables if everything needed is known, and adds the tables of the loaded modules.
 * Returns the number of areas.
 */
SEC("syscall")
int orc_learn(void *ctx)
{
	struct orc_areas *areas = orc_areas_get();
	struct orc_area *kernel;
	const struct list_head *head;
	struct module_list list;

	if (!areas || !bpf_core_type_exists(struct orc_entry))
		return 0;
	areas->count = 0; /* no walks until everything is known */
	kernel = &areas->items[0];
	if (!kernel->begin || kernel->end <= kernel->begin || !kernel->ips || !kernel->rows ||
	    areas->ips_end <= kernel->ips)
		return 0;
	kernel->count = (areas->ips_end - kernel->ips) / 4;
	if (kernel->count >> ORC_STEPS || !learn_numbers(areas))
		return 0;
	areas->count = 1;
	head = (const void *)areas->modules;
	list.head = areas->modules;
	list.next = head ? (__u64)BPF_CORE_READ(head, next) : 0;
	bpf_loop(MODULES_MAX, take_module, &list, 0);
	return (int)areas->count;
}
