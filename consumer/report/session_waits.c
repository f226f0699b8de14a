/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/report/session_waits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/macro.h"

#define NAME_MAX_BYTES 256 /* of a name in session.end */

int session_waits_init(struct session_waits *s)
{
	*s = (struct session_waits){ .rows = calloc(SESSION_WAITS_ROWS, sizeof(*s->rows)) };
	idmap_init(&s->by_hash, SESSION_WAITS_ROWS);
	return s->rows ? 0 : -ENOMEM;
}

void session_waits_done(struct session_waits *s)
{
	idmap_done(&s->by_hash);
	free(s->rows);
	s->rows = NULL;
}

/* Returns the row of the pair, made if need be; NULL without room. */
static struct session_wait *row_of(struct session_waits *s, const struct named_frame *frame,
				   uint8_t state, bool idle)
{
	const char *fn = frame && frame->fn ? frame->fn : "";
	uint64_t key = idmap_text_key(fn) * 0x9e3779b97f4a7c15ULL + state * 2u + idle;
	struct session_wait *row;

	key = key ? key : 1;
	row = idmap_get(&s->by_hash, key);
	if (row || s->count >= SESSION_WAITS_ROWS)
		return row;
	row = &s->rows[s->count];
	if (idmap_put(&s->by_hash, key, row) < 0)
		return NULL;
	s->count++;
	*row = (struct session_wait){ .state = state, .idle = idle };
	if (frame) {
		row->fn = frame->fn;
		row->module = frame->module;
	}
	return row;
}

/*
 * Returns the frame that tells where the program waits: the innermost of its own file, not of the C
 * library around the system call; else the innermost user frame; else that of the kernel.
 */
static const struct named_frame *find_telling(const struct stack *stack,
					      const struct named_frame *frames, size_t n)
{
	for (size_t i = stack->kernel_frames; i < n; i++)
		if (stack->exe && stack->frames[i].module == stack->exe)
			return &frames[i];
	if (stack->kernel_frames < n)
		return &frames[stack->kernel_frames];
	return n ? &frames[0] : NULL;
}

void session_waits_add(struct session_waits *s, const struct stack *stack, bool idle,
		       const struct named_frame *frames, size_t n)
{
	struct session_wait *row;

	if (stack->phase == PHASE_ONSET)
		s->onset_ns[stack->wait] += stack->weight_ns;
	if (stack->phase != PHASE_DURING)
		return;
	row = row_of(s, find_telling(stack, frames, n), stack->wait, idle);
	s->state_ns[stack->wait] += stack->weight_ns;
	if (!row)
		return;
	row->weight_ns += stack->weight_ns;
	row->threads += stack->threads;
}

/* Returns the state of a thread that waits for what the pressure of `resource` measures. */
static uint8_t state_of(enum resource resource)
{
	switch (resource) {
	case RESOURCE_IO:
		return WAIT_BLOCKED + WAIT_IO;
	case RESOURCE_MEMORY:
		return WAIT_BLOCKED + WAIT_MEMORY;
	default:
		return WAIT_FOR_CPU;
	}
}

uint64_t session_waits_of(const struct session_waits *s, enum resource resource)
{
	return s->onset_ns[state_of(resource)] + s->state_ns[state_of(resource)];
}

/* How a person says what a thread waits for in this state. */
static const char *say_state(uint8_t state)
{
	static const char *const words[] = {
		[WAIT_FOR_CPU] = "a CPU",
		[WAIT_BLOCKED + WAIT_IO] = "io",
		[WAIT_BLOCKED + WAIT_MEMORY] = "memory",
		[WAIT_BLOCKED + WAIT_LOCK] = "a lock",
		[WAIT_BLOCKED + WAIT_SLEEP] = "a time",
		[WAIT_BLOCKED + WAIT_IDLE] = "work",
		[WAIT_BLOCKED + WAIT_PIPE] = "a pipe",
		[WAIT_BLOCKED + WAIT_SOCKET] = "a socket",
		[WAIT_BLOCKED + WAIT_CHILD] = "a child process",
		[WAIT_BLOCKED + WAIT_FAULT] = "a page",
		[WAIT_BLOCKED + WAIT_OTHER] = "something else",
	};

	_Static_assert(ARRAY_SIZE(words) == WAIT_BLOCKED + WAIT_KIND_COUNT_,
		       "a kind of wait has no words");
	return words[state];
}

/* Returns the heaviest row for `resource` (see session_waits_clause), NULL when there is none. */
static const struct session_wait *find_top(const struct session_waits *s, enum resource resource)
{
	const struct session_wait *top = NULL;

	for (size_t i = 0; i < s->count; i++) {
		const struct session_wait *row = &s->rows[i];
		bool wanted = resource == RESOURCE_COUNT_ ? row->state >= WAIT_BLOCKED && !row->idle
							  : row->state == state_of(resource);

		if (wanted && (!top || row->weight_ns > top->weight_ns))
			top = row;
	}
	return top;
}

/* The states are the parts of a time account. */
_Static_assert((int)ACCOUNT_QUEUE == WAIT_FOR_CPU && (int)ACCOUNT_IO == WAIT_BLOCKED,
	       "a state is not a part of a time account");

int session_waits_clause(const struct session_waits *s, enum resource resource,
			 const uint64_t *part_ns, char *text, size_t space)
{
	const struct session_wait *top = find_top(s, resource);
	const char *fn;

	if (!top || s->state_ns[top->state] < NSEC_PER_MSEC)
		return 0;
	fn = top->fn ? top->fn : "unnamed code";
	if (part_ns && part_ns[top->state] >= NSEC_PER_MSEC)
		return snprintf(text, space,
				"; its threads waited %llu ms for %s, most of it in %.200s",
				(unsigned long long)(part_ns[top->state] / NSEC_PER_MSEC),
				say_state(top->state), fn);
	return snprintf(text, space, "; its threads waited %llu ms for %s, %llu ms of it in %.200s",
			(unsigned long long)(s->state_ns[top->state] / NSEC_PER_MSEC),
			say_state(top->state), (unsigned long long)(top->weight_ns / NSEC_PER_MSEC),
			fn);
}

static int by_weight(const void *a, const void *b)
{
	const struct session_wait *x = a, *y = b;

	if (x->idle != y->idle)
		return x->idle ? 1 : -1;
	if (x->weight_ns != y->weight_ns)
		return x->weight_ns < y->weight_ns ? 1 : -1;
	return x->state - y->state;
}

static void put_text(struct jsonw *w, const char *key, const char *text)
{
	if (text)
		jsonw_string_n(w, key, text, strnlen(text, NAME_MAX_BYTES));
	else
		jsonw_null(w, key);
}

static void write_row(const struct session_wait *row, struct jsonw *w)
{
	jsonw_object(w, NULL);
	put_text(w, "fn", row->fn);
	put_text(w, "module", row->module);
	jsonw_string(w, "state", row->state == WAIT_FOR_CPU ? "runnable" : "blocked");
	if (row->state >= WAIT_BLOCKED)
		jsonw_string(w, "wait", wait_kind_name(row->state));
	jsonw_bool(w, "idle", row->idle);
	jsonw_u64(w, "weight_ms", row->weight_ns / NSEC_PER_MSEC);
	jsonw_u64(w, "threads", row->threads);
	jsonw_object_end(w);
}

void session_waits_write(struct session_waits *s, struct jsonw *w)
{
	if (!s->count)
		return;
	/* The rows move, so by_hash is of no use from here on. */
	qsort(s->rows, s->count, sizeof(*s->rows), by_weight);
	jsonw_array(w, "waits");
	for (size_t i = 0; i < MIN(s->count, (size_t)SESSION_WAITS_TOP); i++)
		write_row(&s->rows[i], w);
	jsonw_array_end(w);
}
