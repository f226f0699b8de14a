/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/waits/known_wait.h"

#include <linux/futex.h>
#include <string.h>

#include "consumer/sampling/wait_kind.h"
#include "consumer/sampling/wait_objects.h"
#include "shared/tools/macro.h"

struct row {
	const char *fn;
	bool passes;
	enum known_wait_what what;
};

static const struct row rows[] = {
#define KNOWN_WAIT(fn, passes, what) { (fn), (passes), KNOWN_WAIT_##what },
#include "consumer/evidence/waits/known_waits.def"
#undef KNOWN_WAIT
};

static const struct row *find_row(const char *fn)
{
	for (size_t i = 0; fn && i < ARRAY_SIZE(rows); i++)
		if (strcmp(rows[i].fn, fn) == 0)
			return &rows[i];
	return NULL;
}

/* Applies the function's row to the wait; the innermost function with a row decides. */
static void take_word(struct known_wait *w, enum known_wait_what what)
{
	switch (what) {
	case KNOWN_WAIT_LOCK:
		w->state = WAIT_BLOCKED + WAIT_LOCK;
		w->idle = w->condition = false;
		break;
	case KNOWN_WAIT_PEER:
		w->state = WAIT_BLOCKED + WAIT_OTHER;
		w->idle = w->condition = false;
		break;
	case KNOWN_WAIT_SLEEP:
		w->state = WAIT_BLOCKED + WAIT_SLEEP;
		w->condition = false;
		break;
	case KNOWN_WAIT_IDLE:
		w->state = WAIT_BLOCKED + WAIT_IDLE;
		w->idle = true;
		w->condition = false;
		break;
	case KNOWN_WAIT_CONDITION:
		w->condition = true;
		break;
	case KNOWN_WAIT_NOTHING:
		break;
	}
}

/*
 * Whether a thread in a condition-variable function waits at the mutex that it wants back, or at a
 * mutex with priority inheritance. A glibc that has these functions in libc.so.6 (2.34 and newer)
 * waits on a condition variable with FUTEX_WAIT_BITSET only, and at a mutex with FUTEX_WAIT
 * (nptl/futex-internal.c, nptl/lowlevellock.c); with other libraries a plain FUTEX_WAIT may be
 * either.
 */
static bool is_at_mutex(const struct look_on *on, const struct named_frame *frame)
{
	const char *name = frame->module ? strrchr(frame->module, '/') : NULL;
	int operation;

	if (!on || on->kind != LOOK_ON_FUTEX)
		return false;
	if (on->state != LOOK_LOCK_UNKNOWN)
		return wait_objects_is_lock(on);
	operation = on->number & FUTEX_CMD_MASK;
	return operation == FUTEX_LOCK_PI || operation == FUTEX_LOCK_PI2 ||
	       (operation == FUTEX_WAIT && on->number && name && !strcmp(name, "/libc.so.6"));
}

/* Returns the row of a native function; NULL: it has none. An application may use any name. */
static const struct row *row_of(const struct named_frame *f)
{
	return frame_name_is_runtime(f) ? NULL : find_row(f->fn);
}

/* Whether a function is the program's: its own, or of a library that works for it. */
static bool is_place(const struct named_frame *f)
{
	const struct row *row = row_of(f);

	return f->fn && !f->entry && !(row && row->passes) && !frame_name_is_library(f->module);
}

/*
 * Returns the index of the frame that identifies the wait: the innermost function that a runtime
 * has compiled, because its natives wait for it; else the innermost one of the program; n: none. A
 * runtime that interprets is no place, but a library that a function calls is: a function may wait
 * in it and, at other times, elsewhere.
 */
static size_t find_place(const struct stack *stack, const struct named_frame *frames, size_t n)
{
	size_t place = n;

	for (size_t i = stack->kernel_frames; i < n; i++) {
		if (!is_place(&frames[i]) || frames[i].interpreter)
			continue;
		if (frames[i].kind && !strcmp(frames[i].kind, "jit"))
			return i;
		place = MIN(place, i);
		if (frame_name_is_runtime(&frames[i]))
			return place;
	}
	return place;
}

/* Returns the innermost frame of the program's own file that is no entry point; NULL: none. */
static const struct named_frame *find_own(const struct stack *stack,
					  const struct named_frame *frames, size_t n)
{
	for (size_t i = stack->kernel_frames; i < n; i++)
		if (stack->exe && stack->frames[i].module == stack->exe && !frames[i].entry)
			return &frames[i];
	return NULL;
}

/* Finds the frame that identifies the wait, and its callers below main. */
static void find_frames(const struct stack *stack, const struct named_frame *frames, size_t n,
			struct known_wait *w)
{
	size_t place = find_place(stack, frames, n), callers = 0;
	const struct module *library = NULL;
	const struct named_frame *own;
	bool of_runtime = false;

	/* One function of a library is enough: its callers in other files explain more. */
	if (place < n && frame_name_is_runtime(&frames[place]))
		of_runtime = true;
	else if (stack->exe && place < n && stack->frames[place].module != stack->exe)
		library = stack->frames[place].module;
	for (size_t i = place + 1; i < n && callers < KNOWN_WAIT_CALLERS; i++) {
		if (!is_place(&frames[i]) || (library && stack->frames[i].module == library) ||
		    (of_runtime && !frame_name_is_runtime(&frames[i])) || frames[i].interpreter)
			continue;
		if (!strcmp(frames[i].fn, "main"))
			break;
		w->callers[callers++] = frames[i].fn;
	}
	own = find_own(stack, frames, n);
	if (place < n)
		w->frame = &frames[place];
	else if (own)
		w->frame = own;
	else if (stack->kernel_frames < n && !frames[stack->kernel_frames].entry)
		w->frame = &frames[stack->kernel_frames];
	else if (n && !frames[0].entry)
		w->frame = &frames[0];
}

void known_wait_judge(const struct stack *stack, const struct look_on *on,
		      const struct named_frame *frames, size_t n, struct known_wait *ret_wait)
{
	*ret_wait = (struct known_wait){ .state = wait_objects_state(stack->wait, on), .on = on };
	ret_wait->idle = wait_objects_is_idle(stack->wait, on);
	ret_wait->event =
		stack->wait == WAIT_BLOCKED + WAIT_LOCK && on && wait_objects_is_event(on);
	ret_wait->condition = ret_wait->event;
	find_frames(stack, frames, n, ret_wait);
	/*
	 * A thread that waits for a CPU, a disk or memory inside such a function waits for just
	 * that.
	 */
	if (stack->wait != WAIT_BLOCKED + WAIT_IDLE && stack->wait != WAIT_BLOCKED + WAIT_LOCK)
		return;
	for (size_t i = stack->kernel_frames; i < n; i++) {
		const struct row *row = row_of(&frames[i]);

		if (!row || row->what == KNOWN_WAIT_NOTHING)
			continue;
		if (row->what == KNOWN_WAIT_CONDITION && is_at_mutex(on, &frames[i]))
			return;
		ret_wait->event = false;
		take_word(ret_wait, row->what);
		return;
	}
}
