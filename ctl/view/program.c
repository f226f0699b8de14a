/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/view/program.h"

#include "shared/tools/cleanup.h"

static int find_heaviest(struct store *s, uint32_t *ret_exe)
{
	_cleanup_free_ uint64_t *sums = NULL; /* by text */
	uint32_t space = 0, most = STORE_NONE;
	int r = pool_grow(&s->budget, (void **)&sums, &space, s->texts.count, sizeof(*sums));

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < s->keys.count; i++) {
		uint32_t exe = store_key_get(s, i)->exe;

		if (exe == STORE_NONE)
			continue;
		sums[exe] = store_sum(sums[exe], s->values[i].weight_ns);
		most = most == STORE_NONE || sums[exe] > sums[most] ? exe : most;
	}
	s->budget.used_bytes -= space * sizeof(*sums);
	*ret_exe = most;
	return 0;
}

int program_find(struct store *s, struct store_frame *ret_program)
{
	struct store_frame program = {
		.fn = STORE_NONE,
		.raw = STORE_NONE,
		.build_id = STORE_NONE,
		.file = STORE_NONE,
		.kind = STORE_USER,
	};
	int r = find_heaviest(s, &program.module);

	if (r < 0)
		return r;
	for (uint32_t i = 0; program.module != STORE_NONE && i < s->frames.count; i++) {
		const struct store_frame *f = store_frame_get(s, i);

		if (f->kind != STORE_USER || f->module != program.module)
			continue;
		program.build_id = f->build_id;
		break;
	}
	*ret_program = program;
	return 0;
}
