/* SPDX-License-Identifier: BSD-2-Clause */
/* specimen_cfi.S: what compilers do not write: each directive, each form that becomes a rule. */
	.text
	.cfi_sections .eh_frame, .debug_frame

	.globl outermost
outermost:
	.cfi_startproc
	.cfi_undefined rip
	nop
	.cfi_endproc

	.globl signal_frame
signal_frame:
	.cfi_startproc
	.cfi_signal_frame
	.cfi_def_cfa rsp, 0
	.cfi_escape 0x0f, 4, 0x77, 0xa0, 1, 0x06
	.cfi_escape 0x10, 6, 3, 0x77, 0xf8, 0
	.cfi_escape 0x10, 7, 3, 0x77, 0xa0, 1
	.cfi_escape 0x10, 16, 3, 0x77, 0xa8, 1
	nop
	.cfi_endproc

	.globl plt
plt:
	.cfi_startproc
	.cfi_escape 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22
	.skip 64, 0x90
	.cfi_endproc

	.globl stack_in_memory
stack_in_memory:
	.cfi_startproc
	nop
	.cfi_escape 0x0f, 6, 0x77, 0xd8, 0, 0x06, 0x23, 8
	nop
	.cfi_escape 0x0f, 5, 0x76, 0x58, 0x06, 0x23, 8
	nop
	.cfi_def_cfa rax, 8
	nop
	.cfi_endproc

	.globl every_directive
every_directive:
	.cfi_startproc
	nop
	.cfi_remember_state
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbp, 0
	nop
	.cfi_offset r13, -64
	.cfi_val_offset r12, -24
	.cfi_register r14, rbx
	.skip 300, 0x90
	.cfi_restore_state
	.cfi_same_value rbp
	nop
	.cfi_register rip, rdx
	.skip 70000, 0x90
	.cfi_restore rip
	.cfi_return_column rip
	nop
	.cfi_escape 0x2e, 0x10
	.cfi_escape 0x16, 6, 3, 0x77, 8, 0x06
	.cfi_undefined rbp
	nop
	.cfi_endproc

	.section .note.GNU-stack, "", @progbits
