/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* runtime_walk.h: the state of a walk over the frames of a language runtime. */
#ifndef TROCAR_BPF_RUNTIMES_RUNTIME_WALK_H
#define TROCAR_BPF_RUNTIMES_RUNTIME_WALK_H

#include "bpf/runtimes/runtime_facts.h"

#define RUNTIME_CODE_BYTES   144
#define RUNTIME_FRAME_BYTES  112
#define RUNTIME_OBJECT_BYTES 40

/*
 * The state of a walk over the frames of a runtime. In memory, because the verifier would track
 * each value. The record of a name and its text are written as one.
 */
struct runtime_walk {
	struct runtime_proved facts; /* a copy */
	__u64 thread;		     /* the thread pointer of the walked thread (fsbase) */
	__u64 state;		     /* its thread state */
	__u64 frame;		     /* the next frame */
	__u32 second;		     /* of CLOCK_MONOTONIC */
	__u32 slot;		     /* of the watch whose owner pays for its copies */
	__u32 pad;
	__u32 copies;	       /* code objects that it may still copy */
	__u32 delayed;	       /* 1: a limit has left a code object without a name */
	__u32 wants;	       /* the process, if its ticks are to copy such names; else 0 */
	__u32 count;	       /* number of `words` */
	__u32 end;	       /* enum runtime_end */
	__u64 frame_words[16]; /* the frame that was read last */
	__u64 code_words[RUNTIME_CODE_BYTES / 8 + 14]; /* its code object; a power of 2 words */
	__u64 object_words[8];			       /* a string or a bytes object */
	__u64 words[RUNTIME_FRAMES_MAX];
	struct runtime_name name;
};

#endif
