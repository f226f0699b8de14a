/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/cpu/function_growth.h"

#include <errno.h>
#include <stdlib.h>

#include "shared/tools/macro.h"

/*
 * A function with this many tenths of the first function's growth may be the cause instead: among
 * fifty samples chance alone moves a function's share by nearly a tenth.
 */
#define NEARLY_TENTHS 8

#define CALM_HZ 19 /* the recorder's usual rate */
#define SIGMAS	3

int function_growth_init(struct function_growth *g)
{
	*g = (struct function_growth){};
	g->rows = calloc(FUNCTION_GROWTH_ROWS, sizeof(*g->rows));
	return g->rows ? 0 : -ENOMEM;
}

void function_growth_done(struct function_growth *g)
{
	free(g->rows);
	*g = (struct function_growth){};
}

/*
 * Returns the row of the function, or the free row for it. Compares names by address: the symbol
 * tables hold each name once, and walking the bytes would cost more than writing the line.
 */
static struct function_growth_row *find_row(const struct function_growth *g, const char *fn,
					    const char *module)
{
	uint64_t hash = ((uintptr_t)fn ^ (uintptr_t)module << 7) * 0x9e3779b97f4a7c15ULL;
	size_t i = (hash >> 32) % FUNCTION_GROWTH_ROWS;

	while (g->rows[i].fn && (g->rows[i].fn != fn || g->rows[i].module != module))
		i = (i + 1) % FUNCTION_GROWTH_ROWS;
	return &g->rows[i];
}

/* Counts the stack for one of its functions, once even if the function is in it several times. */
static void count_function(struct function_growth *g, const struct stack *stack,
			   const struct named_frame *frame, size_t depth,
			   enum function_growth_time time)
{
	struct function_growth_row *row = find_row(g, frame->fn, frame->module);

	if (!row->fn) {
		if (g->count >= FUNCTION_GROWTH_ROWS / 4 * 3)
			return;
		*row = (struct function_growth_row){ .fn = frame->fn, .module = frame->module };
		g->count++;
	}
	if (row->stack == g->stacks)
		return;
	row->stack = g->stacks;
	row->ns[time] += stack->weight_ns;
	if (time != GROWTH_STALLED)
		return;
	row->depth_ns += depth * stack->weight_ns;
	if (stack->weight_ns > row->comm_ns) {
		row->comm = stack->comm;
		row->comm_ns = stack->weight_ns;
	}
}

void function_growth_add(struct function_growth *g, const struct stack *stack,
			 const struct named_frame *frames, size_t n)
{
	enum function_growth_time time =
		stack->phase == PHASE_DURING ? GROWTH_STALLED : GROWTH_CALM;

	if (stack->phase == PHASE_ONSET)
		return;
	g->stacks++;
	g->ns[time] += stack->weight_ns;
	g->samples[time] += stack->count;
	for (size_t i = stack->user_frames ? stack->kernel_frames : 0; i < n; i++)
		if (frames[i].fn)
			count_function(g, stack, &frames[i], n - 1 - i, time);
}

/* The base that functions are compared by: their share of one of these in each time. */
struct scale {
	uint64_t ns[GROWTH_TIMES]; /* 0: nothing was sampled */
};

/* Returns the row's share of the scale, in thousandths. */
static int64_t part_of(const struct function_growth_row *row, const struct scale *scale,
		       enum function_growth_time time)
{
	return scale->ns[time] ? (int64_t)(row->ns[time] * 1000 / scale->ns[time]) : 0;
}

static int64_t growth_of(const struct function_growth_row *row, const struct scale *scale)
{
	return part_of(row, scale, GROWTH_STALLED) - part_of(row, scale, GROWTH_CALM);
}

static int64_t find_most(const struct function_growth *g, const struct scale *scale)
{
	int64_t most = 0;

	for (size_t i = 0; i < FUNCTION_GROWTH_ROWS; i++)
		if (g->rows[i].fn && growth_of(&g->rows[i], scale) > most)
			most = growth_of(&g->rows[i], scale);
	return most;
}

/* Finds the row that grew; NULL: none. */
static const struct function_growth_row *find_grown(const struct function_growth *g,
						    const struct scale *scale)
{
	const struct function_growth_row *best = NULL;
	int64_t most = find_most(g, scale), best_growth = 0;
	uint64_t best_depth = 0;

	if (most < FUNCTION_GROWTH_LEAST)
		return NULL;
	for (size_t i = 0; i < FUNCTION_GROWTH_ROWS; i++) {
		const struct function_growth_row *row = &g->rows[i];
		int64_t growth = row->fn ? growth_of(row, scale) : 0;
		uint64_t depth;

		if (!row->fn || growth * 10 < most * NEARLY_TENTHS)
			continue;
		depth = row->depth_ns / row->ns[GROWTH_STALLED];
		if (!best || depth > best_depth || (depth == best_depth && growth > best_growth)) {
			best = row;
			best_depth = depth;
			best_growth = growth;
		}
	}
	return best;
}

/* Returns the weight of one sample; without samples, the weight at the recorder's usual rate. */
static double sample_ns(const struct function_growth *g, enum function_growth_time time)
{
	return g->samples[time] ? (double)g->ns[time] / (double)g->samples[time]
				: (double)NSEC_PER_SEC / CALM_HZ;
}

/*
 * Returns whether the row's shares differ by no more than chance causes three times in a thousand:
 * of the samples of a time, those of a function are a binomial count, in a length of time a Poisson
 * count. One is added because zero samples may be chance too.
 */
static bool is_chance(const struct function_growth *g, const struct function_growth_row *row,
		      const struct scale *scale, bool by_rate)
{
	double grown = 0, variance = 0;

	for (int time = GROWTH_CALM; time < GROWTH_TIMES; time++) {
		double each = sample_ns(g, time) / (double)MAX(scale->ns[time], (uint64_t)1);
		double count = (double)row->ns[time] / sample_ns(g, time);

		grown += each * count * (time == GROWTH_STALLED ? 1 : -1);
		variance += each * each * (count * (by_rate ? 1 : 1 - each * count) + 1);
	}
	return grown * grown < SIGMAS * SIGMAS * variance;
}

/* Whether the service has at least twice its CPU time per second: shares would hide this. */
static bool has_doubled(const struct function_growth *g, uint64_t calm_ms, uint64_t stalled_ms)
{
	return calm_ms >= FUNCTION_GROWTH_CALM_MS &&
	       g->samples[GROWTH_STALLED] >= FUNCTION_GROWTH_SAMPLES &&
	       (double)g->ns[GROWTH_STALLED] * (double)calm_ms >=
		       2 * (double)g->ns[GROWTH_CALM] * (double)stalled_ms;
}

bool function_growth_find(const struct function_growth *g, uint64_t calm_ms, uint64_t stalled_ms,
			  struct function_grown *ret_grown)
{
	const struct scale shares = { { g->ns[GROWTH_CALM], g->ns[GROWTH_STALLED] } };
	const struct scale cpu = { { calm_ms * NSEC_PER_MSEC, stalled_ms * NSEC_PER_MSEC } };
	bool by_rate = g->samples[GROWTH_CALM] < FUNCTION_GROWTH_SAMPLES ||
		       has_doubled(g, calm_ms, stalled_ms);
	const struct scale *scale = by_rate ? &cpu : &shares;
	const struct function_growth_row *best;

	if (by_rate && (calm_ms < FUNCTION_GROWTH_CALM_MS ||
			g->samples[GROWTH_STALLED] < FUNCTION_GROWTH_SAMPLES))
		return false;
	best = find_grown(g, scale);
	if (!best)
		return false;
	*ret_grown = (struct function_grown){
		.fn = best->fn,
		.comm = best->comm,
		.share_pct = (unsigned int)(part_of(best, &shares, GROWTH_STALLED) / 10),
		.calm_pct = (unsigned int)(part_of(best, scale, GROWTH_CALM) / 10),
		.stalled_pct = (unsigned int)(part_of(best, scale, GROWTH_STALLED) / 10),
		.by_rate = by_rate,
		.by_chance = is_chance(g, best, scale, by_rate),
	};
	return true;
}

const char *function_growth_comm(const struct function_growth *g, const char *fn,
				 const char *module)
{
	return find_row(g, fn, module)->comm;
}
