/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shapes.S: functions in assembly: four without call frame information, one whose information leaves
 * out what it pushes, which is 0.
 */
	.text

	.macro	spin
	mov	$20000, %ecx
1:	dec	%ecx
	jnz	1b
	.endm

	.macro	function name
	.globl	\name
	.type	\name, @function
	.p2align 4
\name:
	.endm

	function bare_leaf
	spin
	ret
	.size	bare_leaf, . - bare_leaf

	function pushes
	push	%rbx
	push	$0
	push	%r12
	spin
	pop	%r12
	pop	%rax
	pop	%rbx
	ret
	.size	pushes, . - pushes

	function moves_stack
	sub	$264, %rsp
	movq	$0, (%rsp)
	call	bare_leaf
	add	$264, %rsp
	ret
	.size	moves_stack, . - moves_stack

	function keeps_own_register
	push	%rbp
	xor	%ebp, %ebp
	mov	%rsp, %r10
	and	$-64, %rsp
	sub	$128, %rsp
	spin
	mov	%r10, %rsp
	pop	%rbp
	ret
	.size	keeps_own_register, . - keeps_own_register

	function says_falsely
	.cfi_startproc
	pushq	$0
	pushq	$0
	spin
	pop	%rax
	pop	%rax
	ret
	.cfi_endproc
	.size	says_falsely, . - says_falsely

	.section .note.GNU-stack, "", @progbits
