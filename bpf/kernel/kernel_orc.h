/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel_orc.h: the structures of the kernel's own unwind tables and of its modules, declared as in
 * kernel.h. Sources: arch/x86/include/asm/{orc_types,ptrace,module}.h, include/linux/module.h of
 * Linux 6.1 to 7.3.
 */
#ifndef TROCAR_BPF_KERNEL_KERNEL_ORC_H
#define TROCAR_BPF_KERNEL_KERNEL_ORC_H

#include "bpf/kernel/kernel.h"

/*
 * Register numbers in a row of the tables (ORC_REG_*). 7.3 changed some of them, and BTF does not
 * contain them. A row that can only use SP distinguishes the two sets (orc.bpf.c).
 */
#define ORC_REG_UNDEFINED   0
#define ORC_REG_BP	    4
#define ORC_REG_SP_INDIRECT 9

#define ORC_REG_SP	    5 /* until 7.2 */
#define ORC_REG_PREV_SP	    1
#define ORC_REG_BP_INDIRECT 8

#define ORC_REG_SP_7_3		3
#define ORC_REG_PREV_SP_7_3	8
#define ORC_REG_BP_INDIRECT_7_3 10

/* Types of a frame. Before 6.4 CALL was 0, and two bits had the meaning of the first two rows. */
#define ORC_TYPE_UNDEFINED    0
#define ORC_TYPE_END_OF_STACK 1
#define ORC_TYPE_CALL	      2
#define ORC_TYPE_REGS	      3
#define ORC_TYPE_REGS_PARTIAL 4

/* Offsets of registers in struct pt_regs, and in the part that iret pops. */
#define ORC_PT_BP   32
#define ORC_PT_IP   128
#define ORC_PT_CS   136
#define ORC_PT_SP   152
#define ORC_IRET_CS 8

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct orc_entry {
	short sp_offset, bp_offset;
	unsigned int sp_reg : 4;
	unsigned int bp_reg : 4;
	unsigned int type : 3;
};

struct orc_entry___signal {
	unsigned int signal : 1;
};

struct orc_entry___end {
	unsigned int end : 1;
};

struct mod_arch_specific {
	unsigned int num_orcs;
	int *orc_unwind_ip;
	struct orc_entry *orc_unwind;
};

struct module_memory {
	void *base;
	unsigned int size;
};

struct module {
	struct list_head list;
	struct module_memory mem[1]; /* the first is its text; since 6.4 */
	struct mod_arch_specific arch;
};

struct module_layout {
	void *base;
	unsigned int text_size;
};

struct module___layout {
	struct module_layout core_layout; /* before 6.4 */
};

#pragma clang attribute pop

#endif
