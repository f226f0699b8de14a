/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/timeline_line.h"

#include "shared/tools/macro.h"

#define SMOOTH_SLOTS 5

static const char *const words[TIMELINE_PARTS_] = {
#define PART(id, json, help) (json),
#include "shared/abi/account_parts.def"
#undef PART
};

const char *timeline_line_word(enum timeline_part part)
{
	return words[part];
}

bool timeline_line_is_rest(enum timeline_part part)
{
	return part == TIMELINE_IDLE || part == TIMELINE_SLEEP;
}

static void read_row(const struct json_node *row, double unit, uint32_t slots,
		     double ret_row[TIMELINE_LINE_SLOTS])
{
	const struct json_node *number = json_node_first(row);

	for (uint32_t i = 0; i < slots && number; i++, number = json_node_next(number))
		ret_row[i] = (double)json_node_u64(number) * unit;
}

bool timeline_line_read(const struct json_node *line, struct timeline_line *ret_line)
{
	const struct json_node *blocked = json_node_get(line, "blocked");
	double unit = (double)json_node_u64(json_node_get(line, "unit_ms"));
	uint64_t slots = json_node_u64(json_node_get(line, "slots"));
	uint64_t before = json_node_u64(json_node_get(line, "slots_before"));

	*ret_line = (struct timeline_line){
		.pool = json_node_get(line, "pool"),
		.pid = json_node_u64(json_node_get(line, "pid")),
		.others = json_node_u64(json_node_get(line, "others")),
		.slot_ms = (double)json_node_u64(json_node_get(line, "slot_ms")),
		.slots = (uint32_t)MIN(slots, (uint64_t)TIMELINE_LINE_SLOTS),
	};
	ret_line->before = (uint32_t)MIN(before, (uint64_t)ret_line->slots);
	read_row(json_node_get(line, "looks"), 1, ret_line->slots, ret_line->looks);
	for (int i = 0; i < TIMELINE_PARTS_; i++)
		read_row(json_node_get(i <= TIMELINE_QUEUE ? line : blocked, words[i]), unit,
			 ret_line->slots, ret_line->ms[i]);
	return ret_line->slots > 0 && ret_line->slot_ms > 0;
}

double timeline_line_sum(const struct timeline_line *line, enum timeline_part part)
{
	double sum = 0;

	for (uint32_t i = 0; i < line->slots; i++)
		sum += line->ms[part][i];
	return sum;
}

static double sum_slot(const struct timeline_line *line, uint32_t slot)
{
	double sum = 0;

	for (int part = 0; part < TIMELINE_PARTS_; part++)
		sum += line->ms[part][slot];
	return sum;
}

/*
 * Ticks and sampling passes are two independent measures: in one slot their sum may exceed the
 * number of threads, over several slots hardly.
 */
double timeline_line_threads(const struct timeline_line *line)
{
	double most = 0, sum = 0;

	for (uint32_t i = 0; i < line->slots; i++) {
		uint32_t n = MIN(i + 1, (uint32_t)SMOOTH_SLOTS);

		sum += sum_slot(line, i) -
		       (i >= SMOOTH_SLOTS ? sum_slot(line, i - SMOOTH_SLOTS) : 0);
		most = MAX(most, sum / n / line->slot_ms);
	}
	return MAX((double)(uint64_t)(MIN(most, 1e9) + 0.49), 1.0);
}
