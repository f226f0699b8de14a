/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stack_sample.h: a decoded sample: its user addresses are turned into module and file offset while
 * the process is still known. Used by the recorder, sessions and reports.
 */
#ifndef TROCAR_CONSUMER_SAMPLING_STACK_SAMPLE_H
#define TROCAR_CONSUMER_SAMPLING_STACK_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/symbols/symbols.h"
#include "shared/abi/abi.h"

/* The module of an address outside every known mapping; the frame's offset is then the address. */
extern struct module stack_sample_unknown;

/* The module of a frame of a language runtime; the frame's offset is a RUNTIME_WORD. */
extern struct module stack_sample_runtime;

/* One frame; module NULL: a kernel address. */
struct frame {
	struct module *module;
	uint64_t offset; /* file offset, or the address: see stack_sample_offset */
};

/*
 * Frames are leaf first, kernel before user. The last `runtime_frames` of the user frames are those
 * of a language runtime; runtime_merge.h puts them to their places between the native ones.
 */
struct stack_sample {
	uint64_t time_ns;
	uint64_t start_ns;
	uint32_t tgid, tid;
	uint32_t slot, epoch, seq, cpu;
	uint32_t flags; /* enum sample_flag, STACK_SAMPLE_CUT */
	uint16_t kernel_frames, user_frames, runtime_frames;
	int32_t user_error;
	uint32_t stop_reason; /* enum unwind_end with SAMPLE_UNWOUND */
	uint32_t image;	      /* as in struct sample */
	uint32_t call;	      /* as in struct sample */
	uint32_t rule_id;     /* of the rule that its process matched (ruleset.h) */
	uint64_t cgroup_id;   /* of its thread: the watch's cgroup, or one below it */
	uint32_t on;	      /* number of the awaited object (wait_objects.h); 0: unknown */
	uint64_t weight_ns;   /* with SAMPLE_WAKER: as in struct sample_waker */
	struct lock_key lock; /* with SAMPLE_WAKER: as in struct sample_waker */
	uint8_t runtime_end;  /* enum runtime_end with SAMPLE_RUNTIME */
	uint8_t wait;	      /* the wait of its thread (wait_kind.h); WAIT_RUNS: it runs */
	char comm[COMM_BYTES];
	struct frame frames[];
};

/* Returns whether a user frame is code of a known file or of memory: its offset may have marks. */
static inline bool stack_sample_is_code(const struct frame *f)
{
	return f->module && f->module != &stack_sample_unknown &&
	       f->module != &stack_sample_runtime;
}

/*
 * Returns whether a signal interrupted the function of a user frame other than the leaf. Its offset
 * is then that of the next instruction to run, marked with SAMPLE_INTERRUPTED.
 */
static inline bool stack_sample_interrupted(const struct frame *f)
{
	return stack_sample_is_code(f) && f->offset & SAMPLE_INTERRUPTED;
}

/* Returns whether the table walk reached a user frame by the frame pointer (SAMPLE_FOLLOWED). */
static inline bool stack_sample_followed(const struct frame *f)
{
	return stack_sample_is_code(f) && f->offset & SAMPLE_FOLLOWED;
}

/* Returns whether the walk cannot have skipped a frame on this step (SAMPLE_ADJACENT). */
static inline bool stack_sample_adjacent(const struct frame *f)
{
	return stack_sample_followed(f) && f->offset & SAMPLE_ADJACENT;
}

#define STACK_SAMPLE_MARKS (SAMPLE_INTERRUPTED | SAMPLE_FOLLOWED | SAMPLE_ADJACENT)

/* Returns the offset of a frame without these marks. */
static inline uint64_t stack_sample_offset(const struct frame *f)
{
	bool marked = stack_sample_interrupted(f) || stack_sample_followed(f);

	return marked ? f->offset & ~(uint64_t)STACK_SAMPLE_MARKS : f->offset;
}

/* In addition to enum sample_flag: the chain was cut at an address outside every mapping. */
#define STACK_SAMPLE_CUT (1u << 31)

_Static_assert(STACK_SAMPLE_CUT > SAMPLE_FLAGS_END_, "a flag of two meanings");

#define STACK_SAMPLE_FRAMES_MAX (2 * STACK_FRAMES + RUNTIME_FRAMES_MAX)

static inline size_t stack_sample_bytes(const struct stack_sample *s)
{
	return sizeof(*s) + (size_t)(s->kernel_frames + s->user_frames) * sizeof(struct frame);
}

#endif
