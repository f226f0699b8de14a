/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel_pid.h: the structures from a thread's number to its task, declared as in kernel.h. Read
 * them with BPF_CORE_READ only. Sources: include/linux/{pid,pid_namespace,idr,xarray}.h of
 * Linux 6.1 to 7.2.
 */
#ifndef TROCAR_BPF_KERNEL_KERNEL_PID_H
#define TROCAR_BPF_KERNEL_KERNEL_PID_H

#include "bpf/kernel/kernel.h"

#define PID_OF_THREAD  0 /* PIDTYPE_PID */
#define PID_OF_PROCESS 1 /* PIDTYPE_TGID */

/* Low bits of an entry of an xarray that is a node. */
#define XARRAY_NODE 2ull
#define XARRAY_BITS 3ull

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct xarray {
	void *xa_head;
};

struct xa_node {
	unsigned char shift; /* bits of the index below this node */
	void *slots[64];
};

struct idr {
	struct xarray idr_rt;
};

struct pid_namespace {
	struct idr idr; /* number -> struct pid */
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct pid {
	unsigned int level;
	struct hlist_head tasks[4]; /* indexed by PIDTYPE_* */
	struct upid numbers[1];	    /* level + 1; the first is that of the initial namespace */
};

struct task_struct___pids {
	struct pid *thread_pid;
	struct hlist_node pid_links[4]; /* indexed by PIDTYPE_* */
};

#pragma clang attribute pop

#endif
