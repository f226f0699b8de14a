/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/cpu/garbage.h"

#include <string.h>

#include "shared/tools/macro.h"

static const struct {
	const char *name, *runtime;
	bool thread; /* the prefix is of a thread's name, else of a function's */
} rows[] = {
#define COLLECTOR(name, runtime)	{ name, runtime, false },
#define COLLECTOR_THREAD(name, runtime) { name, runtime, true },
#include "shared/findings/collectors.def"
#undef COLLECTOR
#undef COLLECTOR_THREAD
};
_Static_assert(ARRAY_SIZE(rows) == GARBAGE_COLLECTORS, "a row for each");

/* Function names continue with a number, or with the name of a nested function. */
static bool is_collector(size_t row, const struct stack *stack, const struct named_frame *frame)
{
	const char *name = frame ? frame->fn : stack->comm;

	return rows[row].thread == !frame && name &&
	       !strncmp(name, rows[row].name, strlen(rows[row].name));
}

/* Returns the row of the frame, or of the thread if there is no frame; GARBAGE_COLLECTORS: none. */
static size_t find_row(const struct stack *stack, const struct named_frame *frame)
{
	size_t row = 0;

	while (row < GARBAGE_COLLECTORS && !is_collector(row, stack, frame))
		row++;
	return row;
}

/* Nearly all frames of nearly all programs begin with another letter: they need no comparison. */
static void note_letters(struct garbage *g)
{
	for (size_t i = 0; i < GARBAGE_COLLECTORS; i++)
		if (!rows[i].thread)
			g->first[(unsigned char)rows[i].name[0]] = true;
	g->ready = true;
}

void garbage_add(struct garbage *g, const struct stack *stack, const struct named_frame *frames,
		 size_t n)
{
	size_t row = find_row(stack, NULL);

	if (!g->ready)
		note_letters(g);
	for (; row == GARBAGE_COLLECTORS && n > 0; n--) {
		const char *fn = frames[n - 1].fn;

		if (fn && g->first[(unsigned char)fn[0]])
			row = find_row(stack, &frames[n - 1]);
	}
	if (row < GARBAGE_COLLECTORS)
		g->ns[row][stack->phase] += stack->weight_ns;
}

uint64_t garbage_ns(const struct garbage *g, enum phase phase)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < GARBAGE_COLLECTORS; i++)
		ns += g->ns[i][phase];
	return ns;
}

const char *garbage_most(const struct garbage *g, const char **ret_runtime)
{
	size_t most = 0;

	for (size_t i = 1; i < GARBAGE_COLLECTORS; i++)
		if (g->ns[i][PHASE_DURING] > g->ns[most][PHASE_DURING])
			most = i;
	*ret_runtime = rows[most].runtime;
	return rows[most].name;
}
