// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * on_stop.bpf.c: keeps the sender of a signal that stops a process. The kernel forgets it with the
 * signal, and the session comes later. The program is always attached; it returns at once for other
 * signals.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/kernel/kernel.h"
#include "bpf/maps/interrupt.h"
#include "bpf/time/task_halt.h"
#include "bpf/waits/stops.h"
#include "bpf/watch/scope.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* asm-generic/signal.h: equal on x86 and arm64. */
#define SIGSTOP 19
#define SIGTTOU 22 /* the last of four that stop */

/* trace/events/signal.h: neither ignored nor pending already. */
#define TRACE_SIGNAL_DELIVERED 0

SEC("tp_btf/signal_generate")
int BPF_PROG(on_stop, int number, const void *info, struct task_struct *task, int group, int result)
{
	struct task_struct *sender = bpf_get_current_task_btf();
	struct stop *stop;
	bool is_process;

	/* SIGCONT, which is before SIGSTOP, and SIGCHLD are not among these. */
	if (number < SIGSTOP || number > SIGTTOU || result != TRACE_SIGNAL_DELIVERED)
		return 0;
	/* A further signal to a process that is stopped already is not the one that stopped it. */
	if (BPF_CORE_READ(task, __state) & TASK_STOPPED)
		return 0;
	stop = bpf_task_storage_get(&stops, task->group_leader, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!stop)
		return 0;
	is_process =
		!interrupt_is(ctx) && !(sender->flags & PF_KTHREAD) && scope_allows_task(sender);
	stop->tgid = is_process ? sender->tgid : 0;
	BPF_CORE_READ_INTO(&stop->comm, sender, group_leader, comm);
	return 0;
}
