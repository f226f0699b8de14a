/* SPDX-License-Identifier: BSD-2-Clause */
/* unwinding_again.h: when the mappings of a process are read once more. Main thread only. */
#ifndef TROCAR_CONSUMER_UNWINDING_AGAIN_H
#define TROCAR_CONSUMER_UNWINDING_AGAIN_H

struct agent;
struct process;

/* The mappings of `p` were read: if its image was new then, they are a moment later once more. */
void unwinding_again_young(struct agent *a, const struct process *p);

#endif
