/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/process/process_mappings.h"

#include <errno.h>

#include "consumer/jit/perf_map_files.h"
#include "consumer/mappings/mappings_read.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/*
 * Least time between two reads of a process, which may constantly have unknown addresses (JIT, a
 * fresh dlopen).
 */
#define MAP_EVERY_NS (100 * NSEC_PER_MSEC)

/*
 * Least time for a new image and for a process younger than MAP_YOUNG_NS: the agent may have seen
 * it before or during its execve(2), when nothing is mapped, and it may live only briefly.
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

/* Makes the symbolizer's thread open the process's perf map while the process lives. */
static void note_compiled(struct process_mappings *m, struct process *p)
{
	struct process_key key = process_key(p);

	p->compiled = true;
	perf_map_files_meet(symbols_perf_map_files(m->symbols), &key);
}

/*
 * Frees the previous reading, or keeps it in `before` if it is of another image than `fresh`:
 * samples of that image may still arrive.
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

/*
 * Reads by pid first. If that lists nothing of a living process, its main thread may have ended:
 * the walk over all tasks finds another thread. If the kernel finds no process by its pid, the
 * first reading was already that walk.
 */
static int read_mappings(const struct process_mappings *m, const struct process *p,
			 struct mappings *ret_mappings)
{
	int r = mappings_read(m->pins->vmas_pid_path, m->pins->control, p->tgid, p->start_ns,
			      m->symbols, ret_mappings);

	if (r != -EACCES || !m->pins->abi.vma_open_coded)
		return r;
	return mappings_read(m->pins->vmas_path, m->pins->control, p->tgid, p->start_ns, m->symbols,
			     ret_mappings);
}

/* Makes `fresh` the mappings of `p`. */
static void renew_mappings(struct process_mappings *m, struct process *p, struct mappings *fresh)
{
	static const struct mappings none;

	mappings_carry(p->maps.image == fresh->image ? &p->maps : &none, fresh);
	keep_before(p, fresh);
	p->maps = *fresh;
	*fresh = (struct mappings){};
	if (p->maps.compiled)
		note_compiled(m, p);
	process_queue_read(m->processes, p);
}

void process_mappings_take(struct process_mappings *m, struct process *p, struct mappings *fresh)
{
	if (p->maps.count && p->maps.read_ns > fresh->read_ns) {
		mappings_done(fresh);
		return;
	}
	p->tried_ns = clock_mono_ns();
	renew_mappings(m, p, fresh);
}

bool process_mappings_read(struct process_mappings *m, struct process *p, uint64_t not_before_ns)
{
	struct mappings fresh = {};
	uint64_t now;
	int r;

	if (p->maps.count && p->maps.read_ns >= not_before_ns && !p->maps.stale)
		return true;
	now = clock_mono_ns();
	if (!process_is_needed(p) || (p->tried_ns && now - p->tried_ns < MAP_EVERY_NS))
		return p->maps.count;
	p->tried_ns = now;
	r = read_mappings(m, p, &fresh);
	if (r < 0 && r != -EOVERFLOW)
		return p->maps.count;
	renew_mappings(m, p, &fresh);
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

void process_mappings_renew(struct process_mappings *m, const struct module *module)
{
	struct process *p;
	uint64_t id;

	idmap_for_each (&m->processes->by_id, i, id, p) {
		for (size_t k = 0; k < p->maps.count && !p->maps.stale; k++)
			p->maps.stale = p->maps.items[k].module == module;
		if (p->maps.stale)
			p->tried_ns = 0;
	}
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

	if (!process_is_needed(p) || (p->build_ids_ns && now - p->build_ids_ns < MAP_EVERY_NS))
		return;
	p->build_ids_ns = now;
	p->build_ids_pending = process_targets_set_mapped(m->targets, p, false) == 0;
}

/*
 * Chooses by the number of the image, not by time: not every exec causes an event, and an event may
 * arrive after samples of the new image. If programs are mapped at fixed addresses, a frame looked
 * up in the wrong mappings would get a wrong name.
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

/* Whether the sample is the answer with build-ids; its process must have mappings. */
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
		/*
		 * The kernel side does not know the process as mapped: it is new, has a new image,
		 * or the consumer requested it.
		 */
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
