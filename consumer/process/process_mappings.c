/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/process/process_mappings.h"

#include <errno.h>

#include "consumer/symbols/perf_map_files.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* A process with unknown addresses (JIT, fresh dlopen) is not asked more often than this. */
#define MAP_EVERY_NS (100 * NSEC_PER_MSEC)

/*
 * One that has a new image is, and a young one: it may have been met before its execve(2), or amid
 * it, when nothing is mapped, and live for moments.
 */
#define MAP_IMAGE_NS (5 * NSEC_PER_MSEC)
#define MAP_YOUNG_NS NSEC_PER_SEC

void process_mappings_init(struct process_mappings *m, const struct pinned_maps *pins,
			   struct processes *processes, const struct process_targets *targets,
			   struct symbols *symbols)
{
	*m = (struct process_mappings){
		.pins = pins,
		.processes = processes,
		.targets = targets,
		.symbols = symbols,
	};
}

/* Its perf map is opened while it lives, by the symbolizer's thread. */
static void note_compiled(struct process_mappings *m, struct process *p)
{
	struct process_key key = process_key(p);

	p->compiled = true;
	perf_map_files_meet(symbols_jit_files(m->symbols), &key);
}

/* What was read last goes, unless it is of another image than `fresh`: its samples may be to come.
 */
static void keep_before(struct process *p, const struct mappings *fresh)
{
	if (!p->maps.count || p->maps.image == fresh->image) {
		mappings_done(&p->maps);
		return;
	}
	mappings_done(&p->before);
	p->before = p->maps;
	p->maps = (struct mappings){};
}

bool process_mappings_read(struct process_mappings *m, struct process *p, uint64_t not_before_ns)
{
	static const struct mappings none;
	struct mappings fresh = {};
	uint64_t now;
	int r;

	if (p->maps.count && p->maps.read_ns >= not_before_ns)
		return true;
	now = clock_mono_ns();
	if (p->gone_ns || (p->tried_ns && now - p->tried_ns < MAP_EVERY_NS))
		return p->maps.count;
	p->tried_ns = now;
	r = mappings_read(m->pins->vmas_path, m->pins->control, p->tgid, p->start_ns, m->symbols,
			  &fresh);
	if (r < 0 && r != -EOVERFLOW)
		return p->maps.count;

	mappings_carry(p->maps.image == fresh.image ? &p->maps : &none, &fresh);
	keep_before(p, &fresh);
	p->maps = fresh;
	if (p->maps.compiled)
		note_compiled(m, p);
	process_queue_read(m->processes, p);
	return true;
}

bool process_mappings_read_image(struct process_mappings *m, struct process *p, uint64_t time_ns)
{
	uint64_t now = clock_mono_ns();

	if ((p->maps.count || now - p->seen_ns < MAP_YOUNG_NS) && p->tried_ns < time_ns &&
	    now - p->tried_ns >= MAP_IMAGE_NS)
		p->tried_ns = 0;
	return process_mappings_read(m, p, time_ns);
}

void process_mappings_exec(struct process *p, uint64_t time_ns)
{
	if (p->maps.count && p->maps.read_ns < time_ns) {
		mappings_done(&p->before);
		p->before = p->maps;
		p->maps = (struct mappings){};
	}
	p->exec_ns = time_ns;
	p->tried_ns = 0;
	p->unwind.shape = 0;
}

void process_mappings_ask_build_ids(struct process_mappings *m, struct process *p)
{
	uint64_t now = clock_mono_ns();

	if (p->gone_ns || (p->build_ids_ns && now - p->build_ids_ns < MAP_EVERY_NS))
		return;
	p->build_ids_ns = now;
	p->build_ids_pending = process_targets_set_mapped(m->targets, p, false) == 0;
}

/*
 * The number of the image decides. Not every exec is told by an event, and what is told comes after
 * samples of the new image; where programs lie at fixed addresses, a frame in the wrong mappings
 * has a name all the same.
 */
const struct mappings *process_mappings_at(const struct process *p, uint64_t time_ns,
					   uint32_t image)
{
	static const struct mappings none;
	const struct mappings *first = time_ns < p->exec_ns ? &p->before : &p->maps;
	const struct mappings *other = first == &p->maps ? &p->before : &p->maps;

	if (first->count && first->image == image)
		return first;
	if (other->count && other->image == image)
		return other;
	return first->count ? &none : first;
}

/* True when it is the answer with build-ids, by a process whose mappings are known. */
static bool take_answer(struct process_mappings *m, struct process *p, uint64_t time_ns)
{
	if (!p->build_ids_pending || !p->maps.count || time_ns < p->exec_ns)
		return false;
	p->build_ids_pending = false;
	if (unwind_state_settled(&p->unwind, p->maps.image))
		process_targets_set_mapped(m->targets, p, true);
	return true;
}

static bool is_later(uint32_t image, uint32_t than)
{
	return (int32_t)(image - than) > 0;
}

const struct mappings *process_mappings_sampled(struct process_mappings *m, struct process *p,
						const struct sample *record, bool refused)
{
	uint64_t time_ns = record->time_ns;

	if (record->flags & SAMPLE_BUILD_ID) {
		/* The kernel side does not know it as mapped: fresh, a new image, or we asked. */
		if (!take_answer(m, p, time_ns))
			process_mappings_read_image(m, p, time_ns);
	} else {
		bool later = p->maps.count && is_later(record->image, p->maps.image);

		process_mappings_read(m, p, later || refused ? time_ns : 0);
		if (record->flags & SAMPLE_LEAF_ID)
			take_answer(m, p, time_ns);
	}
	return process_mappings_at(p, time_ns, record->image);
}
