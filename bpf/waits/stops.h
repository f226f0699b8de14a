/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* stops.h: the senders of signals that stop processes. */
#ifndef TROCAR_BPF_WAITS_STOPS_H
#define TROCAR_BPF_WAITS_STOPS_H

#include "bpf/maps/maps.h"

/* The sender of the last such signal to a process. */
struct stop {
	__u32 tgid; /* 0: not a process, such as the terminal, or not in the scope */
	__u32 pad;
	char comm[COMM_BYTES];
};

/* Private. The element of a process is that of its main thread, and is freed with it. */
__weak TASK_MAP(stops, struct stop);

#endif
